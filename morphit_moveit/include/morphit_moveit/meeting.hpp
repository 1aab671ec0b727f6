#pragma once

#include <Eigen/Geometry>

namespace morphit_moveit
{
/** A place where two bodies are nearest to each other, or deepest in one another. */
struct Meeting
{
  double distance;         // [m]; in penetration minus the length of the way out
  Eigen::Vector3d first;   // nearest points, in the model frame
  Eigen::Vector3d second;
  Eigen::Vector3d normal;  // unit, from the first to the second: moving that along it increases the distance
};
}  // namespace morphit_moveit
