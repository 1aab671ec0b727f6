// Spheres that contain a shape, and the proof that they do.
#pragma once

#include <vector>

#include <Eigen/Geometry>

#include <morphit_moveit/cover_growth.hpp>

namespace morphit_moveit
{
struct SolidSphere
{
  Eigen::Vector3d center;  // [m]
  double radius;           // [m]
  double inner = 0.0;      // [m], of a ball of the same centre that the geometry contains; 0 if none is known
};

using Spheres = std::vector<SolidSphere>;

/** The spheres of a rigid body in its own frame, and what a query needs of them. */
struct BodySpheres
{
  BodySpheres() = default;
  explicit BodySpheres(Spheres spheres);

  Spheres spheres;
  SolidSphere around{ Eigen::Vector3d::Zero(), -1.0 };  // contains all of them; radius −1 without any
  Eigen::AlignedBox3d box;                              // so does this
  std::vector<std::size_t> parts;                       // a sphere of each set of spheres that hang together
};

/** A growth of all radii with which the spheres contain the shape [m], proven: see `CoverGrowth`; infinity without spheres. */
double neededGrowth(const Spheres& spheres, const CoveredShape& shape);

/** Fill in `inner`: how deep the centres are in the shape, but no more than the radii. */
void measureInner(Spheres& spheres, const CoveredShape& shape);

/** A plain cover of any shape, at most `count` spheres: none is fitted, but nothing sticks out. */
Spheres plainCover(const CoveredShape& shape, std::size_t count);
}  // namespace morphit_moveit
