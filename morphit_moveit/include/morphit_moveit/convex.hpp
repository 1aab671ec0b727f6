// Convex shapes by their support functions: what superovoids are held against, and superovoids themselves.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <Eigen/Geometry>

#include <morphit_moveit/meeting.hpp>

namespace morphit_moveit
{
/** A convex shape in its own frame. Immutable: it may be asked from any thread. */
class Convex
{
public:
  virtual ~Convex() = default;

  /** The point that is farthest along a direction, of any length but zero [m]. */
  virtual Eigen::Vector3d support(const Eigen::Vector3d& direction) const = 0;
};

/** A superellipsoid that may be tapered along z, centred: seven numbers as of `morphit_ros.superovoid`.
 *
 * Its solid is (|x/(a1 fx)|^(2/e1) + |y/(a2 fy)|^(2/e1))^(e1/e2) + |z/a3|^(2/e2) ≤ 1 with fx = 1 + Tx z/a3 and
 * fy = 1 + Ty z/a3. Where that has a dent this is its convex hull.
 */
class Superovoid : public Convex
{
public:
  /** @param axes a1, a2, a3 [m], from 1e-9 to 1e9
   *  @param squareness e1, e2, from 0.1 to 1.9
   *  @param tapering Tx, Ty, from -0.5 to 0.5
   *  @throw std::invalid_argument for any other number. */
  Superovoid(const Eigen::Vector3d& axes, const Eigen::Vector2d& squareness, const Eigen::Vector2d& tapering);

  Eigen::Vector3d support(const Eigen::Vector3d& direction) const override;

  /** Whether a point is in the solid itself, dents left out. */
  bool contains(const Eigen::Vector3d& point) const;

private:
  /** A direction's part of the plane (c ≥ 0, s), of unit length: a section across z, followed in the variable of which
   * both its place and its normal are continuously differentiable functions. */
  struct Chart
  {
    double c;
    double s;
  };
  /** Scaled directions a, b ≥ 0 and z: what is maximised over sections is z s + r(s) |(a fx(s), b fy(s))|. */
  struct Query
  {
    double a;
    double b;
    double z;
  };
  struct Section
  {
    double r;  // of its place: width, and z / a3
    double q;
    double v;  // of its normal
    double w;
    Chart chart;
  };
  struct Height
  {
    double value;
    double fall;  // negative where it rises towards +z
  };

  static Chart between(const Chart& from, const Chart& to, double share);
  bool mayBeDented() const;
  Section section(const Chart& chart) const;
  Height height(const Query& query, const Section& section) const;
  Chart peak(const Query& query, Chart start, Chart low, Chart high) const;
  Section best(const Query& query, const Chart& start) const;

  Eigen::Vector3d axes_;
  Eigen::Vector2d squareness_;
  Eigen::Vector2d tapering_;
  Eigen::Vector2d dual_;   // exponents of the dual norms
  Eigen::Vector2d chart_;  // exponents of the charts' norms
  std::vector<Section> sections_;  // of a shape that may have a dent
};

/** The hull of a few points. */
template <std::size_t COUNT>
class ConvexPoints : public Convex
{
public:
  using Points = std::array<Eigen::Vector3d, COUNT>;

  explicit ConvexPoints(const Points& points) : points_(points)
  {
  }

  Eigen::Vector3d support(const Eigen::Vector3d& direction) const override
  {
    std::size_t best = 0;
    for (std::size_t i = 1; i < COUNT; ++i)
      if (points_[i].dot(direction) > points_[best].dot(direction))
        best = i;
    return points_[best];
  }

private:
  Points points_;
};

/** A convex shape and a ball that is swept over it, in the model frame. */
struct PlacedConvex
{
  const Convex* shape;
  Eigen::Isometry3d pose;
  double margin;  // radius of the ball [m]

  Eigen::Vector3d support(const Eigen::Vector3d& direction) const
  {
    return pose * shape->support(pose.linear().transpose() * direction);
  }
};

/** The distance of two shapes, never greater than it is and less than `tolerance` [m] smaller.
 *
 * By Gilbert, Johnson and Keerthi (1988), and where the shapes overlap without their margins by the expanding polytope of
 * van den Bergen (2001). Once the distance is known to be at least `beyond`, it ends with any number that is no less.
 */
Meeting separation(const PlacedConvex& first, const PlacedConvex& second, double beyond, double tolerance);

/** The distance of a point to a shape without its margin; 0 within it. Never smaller than it is, by less than `tolerance`
 * [m] greater. */
double outside(const PlacedConvex& shape, const Eigen::Vector3d& point, double tolerance);
}  // namespace morphit_moveit
