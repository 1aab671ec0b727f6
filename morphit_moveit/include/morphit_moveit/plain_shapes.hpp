// Shapes that a planner over convex solids does not know, as solids that contain them and that it knows.
#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Geometry>

#include <morphit_moveit/solids.hpp>

namespace morphit_moveit
{
/** Corners of a pyramid that contains a cone, along z from −length/2 to its tip at +length/2: 16 at the base, which
 * reach 2 % beyond it. */
std::vector<Eigen::Vector3d> coneCorners(double radius, double length);

/** Pose of a frame whose half z ≤ 0 is where n·p + d ≤ 0.
 *
 * @throw std::invalid_argument if the normal is zero or something is not finite. */
Eigen::Isometry3d halfSpacePose(const Eigen::Vector3d& normal, double offset);

/** Whether a closed mesh with faces outwards is that of its hull, to a millionth of its size.
 *
 * Each triangle is held against each corner: where these are more than 3e7 pairs the answer is no. */
bool isConvex(const TriangleMesh& mesh);

/** A box of a grid, from one corner to the other. */
struct GridBox
{
  Eigen::Array3i low;
  Eigen::Array3i high;
};

/** The same cells with boxes that share a whole side made one. */
std::vector<GridBox> joined(std::vector<GridBox> boxes);

/** Boxes of a grid in space. */
struct Boxes
{
  std::vector<GridBox> boxes;
  Eigen::Vector3d origin = Eigen::Vector3d::Zero();  // of the grid [m]
  double edge = 0.0;                                 // of its cells [m]

  Eigen::AlignedBox3d operator[](std::size_t index) const
  {
    const GridBox& box = boxes[index];
    return { Eigen::Vector3d(origin + edge * box.low.cast<double>().matrix()),
             Eigen::Vector3d(origin + edge * box.high.cast<double>().matrix()) };
  }
};

/** Cells that a mesh meets, and those within a closed one, as boxes: of the finest cells that need no more than `most`
 * boxes, but not finer than `finest` [m]. Of a mesh that is open they are a shell. */
Boxes boxesOf(const TriangleMesh& mesh, std::size_t most, double finest);
}  // namespace morphit_moveit
