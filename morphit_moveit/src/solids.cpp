#include <morphit_moveit/solids.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace morphit_moveit
{
Eigen::AlignedBox3d Ball::bounds() const
{
  return { Eigen::Vector3d::Constant(-radius_), Eigen::Vector3d::Constant(radius_) };
}

Closest Ball::closest(const Eigen::Vector3d& point) const
{
  const double length = point.norm();
  const Eigen::Vector3d normal = length > 0.0 ? Eigen::Vector3d(point / length) : Eigen::Vector3d::UnitX();
  return { length - radius_, radius_ * normal, normal };
}

void Ball::parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const
{
  static const ConvexPoints<1> center({ Eigen::Vector3d::Zero() });
  if (distance(point, reach) < reach)
    visit(center, Eigen::Vector3d::Zero(), radius_);
}

Eigen::AlignedBox3d Cuboid::bounds() const
{
  return { -half_, half_ };
}

double Cuboid::distance(const Eigen::Vector3d& point, double) const
{
  const Eigen::Vector3d excess = point.cwiseAbs() - half_;
  const double inside = excess.maxCoeff();
  return inside <= 0.0 ? inside : excess.cwiseMax(0.0).norm();
}

Closest Cuboid::closest(const Eigen::Vector3d& point) const
{
  const Eigen::Vector3d excess = point.cwiseAbs() - half_;
  Eigen::Index axis;
  const double inside = excess.maxCoeff(&axis);
  if (inside <= 0.0)
  {
    Closest result{ inside, point, Eigen::Vector3d::Zero() };
    const double side = point[axis] < 0.0 ? -1.0 : 1.0;
    result.point[axis] = side * half_[axis];
    result.normal[axis] = side;
    return result;
  }
  const Eigen::Vector3d nearest = point.cwiseMax(-half_).cwiseMin(half_);
  const Eigen::Vector3d away = point - nearest;
  const double length = away.norm();
  return { length, nearest, away / length };
}

void Cuboid::parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const
{
  if (distance(point, reach) < reach)
    visit(*this, Eigen::Vector3d::Zero(), 0.0);
}

Eigen::Vector3d Cuboid::support(const Eigen::Vector3d& direction) const
{
  return { std::copysign(half_.x(), direction.x()), std::copysign(half_.y(), direction.y()),
           std::copysign(half_.z(), direction.z()) };
}

Revolved Revolved::cylinder(double radius, double length)
{
  const double half = 0.5 * length;
  return Revolved({ { 0.0, half }, { radius, half }, { radius, -half }, { 0.0, -half } });
}

Revolved Revolved::cone(double radius, double length)
{
  const double half = 0.5 * length;
  return Revolved({ { 0.0, half }, { radius, -half }, { 0.0, -half } });
}

Eigen::AlignedBox3d Revolved::bounds() const
{
  double radius = 0.0;
  for (const Eigen::Vector2d& corner : outline_)
    radius = std::max(radius, corner.x());
  return { Eigen::Vector3d(-radius, -radius, outline_.back().y()), Eigen::Vector3d(radius, radius, outline_.front().y()) };
}

Revolved::Nearest Revolved::nearest(const Eigen::Vector2d& at) const
{
  // The outline is convex: inside is what is behind each of its edges, and the nearest edge is the one least far behind.
  // One that is flat has no edges for some directions: nothing is behind those that is beside its ends.
  const Eigen::Vector2d& tip = outline_.front();
  Nearest best{ 0.0, tip, Eigen::Vector2d::UnitY() };
  double least = (at - tip).squaredNorm(), radius = 0.0;
  bool inside = at.y() <= tip.y() && at.y() >= outline_.back().y();
  for (std::size_t i = 0; i + 1 < outline_.size(); ++i)
  {
    radius = std::max(radius, outline_[i + 1].x());
    const Eigen::Vector2d edge = outline_[i + 1] - outline_[i];
    const double squared = edge.squaredNorm();
    if (squared == 0.0)
      continue;
    const Eigen::Vector2d outwards = Eigen::Vector2d(-edge.y(), edge.x()) / std::sqrt(squared);
    inside = inside && outwards.dot(at - outline_[i]) <= 0.0;
    const double along = std::min(1.0, std::max(0.0, edge.dot(at - outline_[i]) / squared));
    const Eigen::Vector2d point = outline_[i] + along * edge;
    const double away = (at - point).squaredNorm();
    if (away < least)
    {
      least = away;
      best.point = point;
      best.normal = outwards;
    }
  }
  inside = inside && at.x() <= radius;
  const double length = std::sqrt(least);
  best.distance = inside ? -length : length;
  if (!inside && length > 0.0)
    best.normal = (at - best.point) / length;
  return best;
}

double Revolved::distance(const Eigen::Vector3d& point, double) const
{
  return nearest({ std::hypot(point.x(), point.y()), point.z() }).distance;
}

Closest Revolved::closest(const Eigen::Vector3d& point) const
{
  const double radius = std::hypot(point.x(), point.y());
  const Eigen::Vector2d out =
      radius > 0.0 ? Eigen::Vector2d(point.x() / radius, point.y() / radius) : Eigen::Vector2d(1.0, 0.0);
  const Nearest flat = nearest({ radius, point.z() });
  const auto turned = [&out](const Eigen::Vector2d& v) { return Eigen::Vector3d(v.x() * out.x(), v.x() * out.y(), v.y()); };
  return { flat.distance, turned(flat.point), turned(flat.normal) };
}

void Revolved::parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const
{
  if (distance(point, reach) < reach)
    visit(*this, Eigen::Vector3d::Zero(), 0.0);
}

Eigen::Vector3d Revolved::support(const Eigen::Vector3d& direction) const
{
  const double length = std::hypot(direction.x(), direction.y());
  const Eigen::Vector2d flat(length, direction.z());
  const Eigen::Vector2d& corner =
      *std::max_element(outline_.begin(), outline_.end(), [&](const Eigen::Vector2d& a, const Eigen::Vector2d& b) {
        return a.dot(flat) < b.dot(flat);
      });
  const double scale = length > 0.0 ? corner.x() / length : 0.0;
  return { scale * direction.x(), scale * direction.y(), corner.y() };
}

Plane::Plane(const Eigen::Vector3d& normal, double offset)
  : normal_(normal.normalized()), offset_(offset / normal.norm())
{
}

Eigen::AlignedBox3d Plane::bounds() const
{
  constexpr double FAR = 1.0e9;
  return { Eigen::Vector3d::Constant(-FAR), Eigen::Vector3d::Constant(FAR) };
}

double Plane::distance(const Eigen::Vector3d& point, double) const
{
  return std::abs(normal_.dot(point) + offset_);
}

Closest Plane::closest(const Eigen::Vector3d& point) const
{
  const double height = normal_.dot(point) + offset_;
  return { std::abs(height), point - height * normal_, height < 0.0 ? Eigen::Vector3d(-normal_) : normal_ };
}
}  // namespace morphit_moveit
