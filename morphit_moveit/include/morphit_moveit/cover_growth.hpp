// How much bodies have to grow to contain a shape: the proof, for spheres and for superovoids.
#pragma once

#include <algorithm>
#include <array>

#include <Eigen/Geometry>

#include <morphit_moveit/solids.hpp>

namespace morphit_moveit
{
/** What bodies are to contain: the surface of a mesh, or another solid. */
struct CoveredShape
{
  SolidConstPtr solid;
  Eigen::Isometry3d pose;  // of the solid, in the frame of the bodies
};

/** The proof, by branch and bound over the triangles of a mesh or the cells of another solid, since the distance to the
 * nearest body changes by no more than the way.
 *
 * Bodies are convex, and remain so when they grow. They have
 *   double outside(point): how far a point is outside all of them [m], any number that is not positive within one;
 *   bool inOne(points, growth): whether one of them, grown, contains all of some points.
 */
template <class Bodies>
class CoverGrowth
{
public:
  // What a bound may be above what is needed [m].
  static constexpr double MESH_TOLERANCE = 1.0e-4;
  static constexpr double SOLID_TOLERANCE = 5.0e-4;

  /** @param inside whether all of a solid that is no mesh is to be contained, not only its surface */
  CoverGrowth(const Bodies& bodies, bool inside) : bodies_(bodies), inside_(inside)
  {
  }

  /** A growth with which the bodies contain the shape [m], by no more than the tolerance above the least one. */
  double over(const CoveredShape& shape)
  {
    growth_ = 0.0;
    if (const auto* mesh = dynamic_cast<const TriangleMesh*>(shape.solid.get()))
    {
      for (const Face& face : mesh->faces())
        overFace({ shape.pose * face[0], shape.pose * face[1], shape.pose * face[2] });
      return growth_ + MESH_TOLERANCE;
    }
    overCell(shape, shape.solid->bounds());
    return growth_ + SOLID_TOLERANCE;
  }

private:
  using Face = std::array<Eigen::Vector3d, 3>;

  void overFace(const Face& face)
  {
    if (bodies_.inOne(face, growth_ + MESH_TOLERANCE))
      return;
    const Eigen::Vector3d center = (face[0] + face[1] + face[2]) / 3.0;
    double radius = 0.0;
    for (const Eigen::Vector3d& corner : face)
      radius = std::max(radius, (corner - center).norm());
    const double here = bodies_.outside(center);
    growth_ = std::max(growth_, here);
    if (here + radius <= growth_ + MESH_TOLERANCE)
      return;
    // In halves across the longest edge: pieces stay compact whatever the triangle's shape.
    int longest = 0;
    for (int i = 1; i < 3; ++i)
      if ((face[(i + 1) % 3] - face[i]).squaredNorm() > (face[(longest + 1) % 3] - face[longest]).squaredNorm())
        longest = i;
    const Eigen::Vector3d& a = face[longest];
    const Eigen::Vector3d& b = face[(longest + 1) % 3];
    const Eigen::Vector3d& c = face[(longest + 2) % 3];
    const Eigen::Vector3d middle = 0.5 * (a + b);
    overFace({ a, middle, c });
    overFace({ middle, b, c });
  }

  void overCell(const CoveredShape& shape, const Eigen::AlignedBox3d& cell)
  {
    const Eigen::Vector3d center = cell.center();
    const double radius = 0.5 * cell.diagonal().norm();
    const Closest surface = shape.solid->closest(center);
    if (surface.distance > radius || (!inside_ && surface.distance < -radius))
      return;
    std::array<Eigen::Vector3d, 8> corners;
    for (int i = 0; i < 8; ++i)
      corners[i] = shape.pose * cell.corner(static_cast<Eigen::AlignedBox3d::CornerType>(i));
    if (bodies_.inOne(corners, growth_ + SOLID_TOLERANCE))
      return;
    // A point that is to be contained, in or beside the cell.
    const Eigen::Vector3d point = surface.distance > 0.0 || !inside_ ? surface.point : center;
    growth_ = std::max(growth_, bodies_.outside(shape.pose * point));
    if (bodies_.outside(shape.pose * center) + radius <= growth_ + SOLID_TOLERANCE)
      return;
    Eigen::Index axis;
    cell.sizes().maxCoeff(&axis);
    Eigen::AlignedBox3d lower = cell, upper = cell;
    lower.max()[axis] = upper.min()[axis] = center[axis];
    overCell(shape, lower);
    overCell(shape, upper);
  }

  const Bodies& bodies_;
  bool inside_;
  double growth_ = 0.0;
};
}  // namespace morphit_moveit
