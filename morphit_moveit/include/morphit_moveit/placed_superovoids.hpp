// Superovoids of placed links against each other and against placed solids.
#pragma once

#include <memory>
#include <vector>

#include <Eigen/Geometry>

#include <morphit_moveit/cover_growth.hpp>
#include <morphit_moveit/meeting.hpp>
#include <morphit_moveit/placed_spheres.hpp>

namespace morphit_moveit
{
/** A superovoid in the frame of its body. */
struct SuperovoidPiece
{
  SuperovoidPiece(std::shared_ptr<const Superovoid> shape, const Eigen::Isometry3d& pose);

  std::shared_ptr<const Superovoid> shape;
  Eigen::Isometry3d pose;
  Eigen::Vector3d center;  // of a ball around it
  double radius;           // [m]
};

using SuperovoidPieces = std::vector<SuperovoidPiece>;

/** By how much superovoids have to grow to contain the surface of a shape [m], proven: see `CoverGrowth`; infinity without
 * superovoids. */
double neededGrowth(const SuperovoidPieces& pieces, const CoveredShape& shape);

/** A body's superovoids in the model frame, each with a ball that is swept over it. */
class PlacedSuperovoids
{
public:
  /** @param growth radius of the ball [m] */
  PlacedSuperovoids(const SuperovoidPieces& pieces, const Eigen::Isometry3d& pose, double growth);

  struct Placed
  {
    PlacedConvex body;
    Eigen::Vector3d center;  // of a ball around it, growth included
    double radius;
  };

  const std::vector<Placed>& pieces() const
  {
    return pieces_;
  }

  /** A lower bound of the distance to a box, and to other superovoids [m]; positive only where they do not touch. */
  double bound(const Eigen::AlignedBox3d& box) const;
  double bound(const PlacedSuperovoids& other) const;

private:
  std::vector<Placed> pieces_;
};

/** The nearest meeting if it is less than `limit` [m] away; whether there is one.
 *
 * Of a mesh each triangle counts, and a superovoid whose middle is inside a closed one is in it as deep as its middle at
 * least. Not for solids without convex parts.
 */
bool nearest(const PlacedSuperovoids& body, const PlacedSolid& solid, double limit, Meeting& meeting);
bool nearest(const PlacedSuperovoids& a, const PlacedSuperovoids& b, double limit, Meeting& meeting);
}  // namespace morphit_moveit
