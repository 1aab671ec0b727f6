#include <morphit_moveit/placed_spheres.hpp>

#include <cmath>

namespace morphit_moveit
{
namespace
{
// Bodies further apart than this are as good as infinitely far [m]: squares of the greatest numbers are none.
constexpr double FAR = 1.0e6;

Eigen::Vector3d centerOf(const PlacedSpheres& body, std::size_t i)
{
  return { body.x[i], body.y[i], body.z[i] };
}

Meeting meet(const PlacedSpheres& body, std::size_t i, const PlacedSolid& solid)
{
  const Closest closest = solid.solid->closest(solid.inverse * centerOf(body, i));
  const Eigen::Vector3d normal = -(solid.pose.linear() * closest.normal);
  return { closest.distance - body.radii[i], centerOf(body, i) + body.radii[i] * normal, solid.pose * closest.point,
           normal };
}

Meeting meet(const PlacedSpheres& a, std::size_t i, const PlacedSpheres& b, std::size_t j)
{
  const Eigen::Vector3d from = centerOf(a, i), to = centerOf(b, j);
  const double length = (to - from).norm();
  const Eigen::Vector3d normal = length > 0.0 ? Eigen::Vector3d((to - from) / length) : Eigen::Vector3d::UnitZ();
  return { length - a.radii[i] - b.radii[j], from + a.radii[i] * normal, to - b.radii[j] * normal, normal };
}

std::vector<Meeting> deepest(std::vector<Meeting> found, std::size_t count)
{
  std::sort(found.begin(), found.end(), [](const Meeting& a, const Meeting& b) { return a.distance < b.distance; });
  if (found.size() > count)
    found.resize(count, found.front());
  return found;
}
}  // namespace

PlacedSolid::PlacedSolid(SolidConstPtr of_solid, const Eigen::Isometry3d& at)
  : solid(std::move(of_solid))
  , pose(at)
  , inverse(at.inverse())
  , bounds(solid->bounds())
  , box(bounds.transformed(at))
{
}

PlacedSpheres::PlacedSpheres(const BodySpheres& of_body, const Eigen::Isometry3d& at, double grown, bool trust_inner,
                             double* rows)
  : body(&of_body)
  , pose(&at)
  , center(at * of_body.around.center)
  , radius(of_body.around.radius + grown)
  , growth(grown)
  , inner(trust_inner ? 1.0 : 0.0)
  , x(rows)
  , y(rows + of_body.spheres.size())
  , z(rows + 2 * of_body.spheres.size())
  , radii(rows + 3 * of_body.spheres.size())
{
}

void PlacedSpheres::fill() const
{
  placed_ = true;
  for (std::size_t i = 0; i < size(); ++i)
  {
    const Eigen::Vector3d at = *pose * body->spheres[i].center;
    x[i] = at.x();
    y[i] = at.y();
    z[i] = at.z();
    radii[i] = body->spheres[i].radius + growth;
  }
}

Verdict verdict(const PlacedSpheres& body, const PlacedSolid& placed, bool decide)
{
  const Solid& solid = *placed.solid;
  const Eigen::Vector3d center = placed.inverse * body.center;
  if (placed.bounds.squaredExteriorDistance(center) >= body.radius * body.radius)
    return Verdict::FREE;
  // One look for all spheres: of a mesh it costs as much as those of many spheres that its box rules out.
  if (!solid.isSurface() && !solid.touches(center, body.radius))
    return Verdict::FREE;
  body.place();
  Verdict result = Verdict::FREE;
  for (std::size_t i = 0; i < body.size(); ++i)
  {
    const double radius = body.radii[i];
    const Eigen::Vector3d at = placed.inverse * centerOf(body, i);
    if (placed.bounds.squaredExteriorDistance(at) >= radius * radius)
      continue;
    if (decide)
    {
      if (solid.touches(at, radius))
        return Verdict::UNDECIDED;
      continue;
    }
    const double distance = solid.distance(at, radius);
    // A centre that is not known to be within the geometry proves nothing, even inside the solid.
    const double inner = body.inner * body.body->spheres[i].inner;
    if (inner > 0.0 && (solid.isSurface() ? std::abs(distance) : distance) < inner)
      return Verdict::COLLIDING;
    if (distance < radius)
      result = Verdict::UNDECIDED;
  }
  // None is cut by the surface: what hangs together is either inside or outside.
  if (decide && solid.isSurface() && std::any_of(body.body->parts.begin(), body.body->parts.end(), [&](std::size_t i) {
        return solid.contains(placed.inverse * centerOf(body, i));
      }))
    return Verdict::UNDECIDED;
  return result;
}

bool touches(const PlacedSpheres& body, const Eigen::Vector3d& center, double radius)
{
  if ((body.center - center).norm() >= body.radius + radius)
    return false;
  body.place();
  for (std::size_t i = 0; i < body.size(); ++i)
  {
    const double reach = body.radii[i] + radius;
    if ((centerOf(body, i) - center).squaredNorm() < reach * reach)
      return true;
  }
  return false;
}

std::vector<Meeting> meetings(const PlacedSpheres& body, const PlacedSolid& solid, std::size_t count)
{
  body.place();
  std::vector<Meeting> found;
  for (std::size_t i = 0; i < body.size(); ++i)
  {
    // Most are ruled out by the box alone.
    if (solid.box.squaredExteriorDistance(centerOf(body, i)) >= body.radii[i] * body.radii[i])
      continue;
    const Meeting meeting = meet(body, i, solid);
    if (meeting.distance < 0.0)
      found.push_back(meeting);
  }
  return deepest(std::move(found), count);
}

std::vector<Meeting> meetings(const PlacedSpheres& a, const PlacedSpheres& b, std::size_t count)
{
  std::vector<Meeting> found;
  nearSpheres(a, b, 0.0, [&](std::size_t i, std::size_t j, double) {
    found.push_back(meet(a, i, b, j));
    return false;
  });
  return deepest(std::move(found), count);
}

bool nearest(const PlacedSpheres& body, const PlacedSolid& placed, double limit, Meeting& meeting)
{
  body.place();
  const Solid& solid = *placed.solid;
  std::size_t found = body.size();
  double least = std::min(limit, FAR);
  for (std::size_t i = 0; i < body.size(); ++i)
  {
    // What is not below `beyond` says nothing: it is compared as it came, since less the radius it may be rounded below.
    const double beyond = least + body.radii[i];
    const Eigen::Vector3d at = placed.inverse * centerOf(body, i);
    if (beyond > 0.0 && placed.bounds.squaredExteriorDistance(at) >= beyond * beyond)
      continue;
    const bool inside = solid.isSurface() && placed.bounds.contains(at);
    const double distance = inside ? solid.closest(at).distance : solid.distance(at, beyond);
    if (distance >= beyond)
      continue;
    least = distance - body.radii[i];
    found = i;
  }
  if (found == body.size())
    return false;
  meeting = meet(body, found, placed);
  return true;
}

bool nearest(const PlacedSpheres& a, const PlacedSpheres& b, double limit, Meeting& meeting)
{
  bool found = false;
  double least = std::min(limit, FAR);
  std::size_t first = 0, second = 0;
  nearSpheres(a, b, least, [&](std::size_t i, std::size_t j, double squared) {
    const double distance = std::sqrt(squared) - a.radii[i] - b.radii[j];
    if (distance < least)
    {
      least = distance;
      first = i;
      second = j;
      found = true;
    }
    return false;
  });
  if (found)
    meeting = meet(a, first, b, second);
  return found;
}
}  // namespace morphit_moveit
