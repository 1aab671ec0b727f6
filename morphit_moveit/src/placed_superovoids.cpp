#include <morphit_moveit/placed_superovoids.hpp>

#include <algorithm>
#include <limits>

namespace morphit_moveit
{
namespace
{
// Distances are less than this too small [m].
constexpr double TOLERANCE = 1.0e-6;
// Bodies further apart than this are as good as infinitely far [m]: squares of the greatest numbers are none.
constexpr double FAR = 1.0e6;

/** For `CoverGrowth`. */
class Cover
{
public:
  explicit Cover(const SuperovoidPieces& pieces)
  {
    for (const SuperovoidPiece& piece : pieces)
      pieces_.push_back({ { piece.shape.get(), piece.pose, 0.0 }, piece.pose.inverse(), piece.shape.get() });
  }

  double outside(const Eigen::Vector3d& point) const
  {
    double least = std::numeric_limits<double>::infinity();
    for (const Piece& piece : pieces_)
      least = std::min(least, outside(piece, point));
    return least;
  }

  template <class Points>
  bool inOne(const Points& points, double growth) const
  {
    return std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
      return std::all_of(points.begin(), points.end(),
                         [&](const Eigen::Vector3d& point) { return outside(piece, point) <= growth; });
    });
  }

private:
  struct Piece
  {
    PlacedConvex placed;
    Eigen::Isometry3d inverse;
    const Superovoid* shape;
  };

  static double outside(const Piece& piece, const Eigen::Vector3d& point)
  {
    return piece.shape->contains(piece.inverse * point) ? 0.0 : morphit_moveit::outside(piece.placed, point, TOLERANCE);
  }

  std::vector<Piece> pieces_;
};
}  // namespace

SuperovoidPiece::SuperovoidPiece(std::shared_ptr<const Superovoid> of_shape, const Eigen::Isometry3d& at)
  : shape(std::move(of_shape)), pose(at)
{
  Eigen::AlignedBox3d box;
  for (int axis = 0; axis < 3; ++axis)
    for (const double sign : { -1.0, 1.0 })
      box.extend(shape->support(sign * Eigen::Vector3d::Unit(axis)));
  center = pose * box.center();
  radius = 0.5 * box.diagonal().norm();
}

double neededGrowth(const SuperovoidPieces& pieces, const CoveredShape& shape)
{
  if (pieces.empty())
    return std::numeric_limits<double>::infinity();
  const Cover cover(pieces);
  return CoverGrowth<Cover>(cover, false).over(shape);
}

PlacedSuperovoids::PlacedSuperovoids(const SuperovoidPieces& pieces, const Eigen::Isometry3d& pose, double growth)
{
  pieces_.reserve(pieces.size());
  for (const SuperovoidPiece& piece : pieces)
    pieces_.push_back(
        { { piece.shape.get(), pose * piece.pose, growth }, pose * piece.center, piece.radius + growth });
}

double PlacedSuperovoids::bound(const Eigen::AlignedBox3d& box) const
{
  double least = std::numeric_limits<double>::max();
  for (const Placed& piece : pieces_)
    least = std::min(least, box.exteriorDistance(piece.center) - piece.radius);
  return least;
}

double PlacedSuperovoids::bound(const PlacedSuperovoids& other) const
{
  double least = std::numeric_limits<double>::max();
  for (const Placed& a : pieces_)
    for (const Placed& b : other.pieces_)
      least = std::min(least, (a.center - b.center).norm() - a.radius - b.radius);
  return least;
}

bool nearest(const PlacedSuperovoids& body, const PlacedSolid& placed, double limit, Meeting& meeting)
{
  bool found = false;
  double least = std::min(limit, FAR);
  const auto take = [&](const Meeting& other) {
    if (other.distance >= least)
      return;
    least = other.distance;
    meeting = other;
    found = true;
  };
  for (const PlacedSuperovoids::Placed& piece : body.pieces())
  {
    double reach = least + piece.radius;
    placed.solid->parts(placed.inverse * piece.center, reach,
                        [&](const Convex& part, const Eigen::Vector3d& offset, double margin) {
                          const PlacedConvex other{ &part, placed.pose * Eigen::Translation3d(offset), margin };
                          take(separation(piece.body, other, least, TOLERANCE));
                          reach = least + piece.radius;
                        });
    if (!placed.solid->isSurface() || !placed.solid->contains(placed.inverse * piece.center))
      continue;
    const Closest closest = placed.solid->closest(placed.inverse * piece.center);
    take({ closest.distance, piece.center, placed.pose * closest.point, -(placed.pose.linear() * closest.normal) });
  }
  return found;
}

bool nearest(const PlacedSuperovoids& a, const PlacedSuperovoids& b, double limit, Meeting& meeting)
{
  bool found = false;
  double least = std::min(limit, FAR);
  for (const PlacedSuperovoids::Placed& first : a.pieces())
  {
    for (const PlacedSuperovoids::Placed& second : b.pieces())
    {
      if ((first.center - second.center).norm() - first.radius - second.radius >= least)
        continue;
      const Meeting other = separation(first.body, second.body, least, TOLERANCE);
      if (other.distance >= least)
        continue;
      least = other.distance;
      meeting = other;
      found = true;
    }
  }
  return found;
}
}  // namespace morphit_moveit
