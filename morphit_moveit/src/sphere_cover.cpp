#include <morphit_moveit/sphere_cover.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace morphit_moveit
{
namespace
{
using Face = std::array<Eigen::Vector3d, 3>;

/** For `CoverGrowth`. */
class Cover
{
public:
  explicit Cover(const Spheres& spheres) : spheres_(spheres)
  {
  }

  double outside(const Eigen::Vector3d& point) const
  {
    double least = std::numeric_limits<double>::infinity();
    for (const SolidSphere& sphere : spheres_)
      least = std::min(least, (point - sphere.center).norm() - sphere.radius);
    return least;
  }

  template <class Points>
  bool inOne(const Points& points, double growth) const
  {
    return std::any_of(spheres_.begin(), spheres_.end(), [&](const SolidSphere& sphere) {
      const double reach = sphere.radius + growth;
      return std::all_of(points.begin(), points.end(), [&](const Eigen::Vector3d& point) {
        return (point - sphere.center).squaredNorm() <= reach * reach;
      });
    });
  }

private:
  const Spheres& spheres_;
};

Eigen::AlignedBox3d boxOf(const std::vector<Face>& faces)
{
  Eigen::AlignedBox3d box;
  for (const Face& face : faces)
    for (const Eigen::Vector3d& corner : face)
      box.extend(corner);
  return box;
}

SolidSphere sphereOf(const std::vector<Face>& faces)
{
  SolidSphere sphere{ boxOf(faces).center(), 0.0 };
  for (const Face& face : faces)
    for (const Eigen::Vector3d& corner : face)
      sphere.radius = std::max(sphere.radius, (corner - sphere.center).norm());
  return sphere;
}

/** Halves of the part with the greatest sphere, again and again. `split` leaves one half in its argument and returns the
 * other, or nothing of both if there is nothing to split. */
template <class Part, class SphereOf, class Split>
Spheres inHalves(Part whole, std::size_t count, SphereOf sphere_of, Split split)
{
  std::vector<Part> parts{ std::move(whole) };
  Spheres spheres{ sphere_of(parts.front()) };
  while (spheres.size() < count)
  {
    const auto greatest = std::max_element(spheres.begin(), spheres.end(), [](const SolidSphere& a, const SolidSphere& b) {
                            return a.radius < b.radius;
                          }) - spheres.begin();
    std::vector<Part> halves = split(parts[greatest]);
    if (halves.empty())
      break;
    parts[greatest] = std::move(halves[0]);
    spheres[greatest] = sphere_of(parts[greatest]);
    for (std::size_t i = 1; i < halves.size(); ++i)
    {
      parts.push_back(std::move(halves[i]));
      spheres.push_back(sphere_of(parts.back()));
    }
  }
  return spheres;
}

std::vector<std::vector<Face>> splitFaces(std::vector<Face>& faces)
{
  if (faces.size() < 2)
    return {};
  Eigen::Index axis;
  boxOf(faces).sizes().maxCoeff(&axis);
  const auto middle = faces.begin() + static_cast<std::ptrdiff_t>(faces.size() / 2);
  std::nth_element(faces.begin(), middle, faces.end(), [axis](const Face& a, const Face& b) {
    return a[0][axis] + a[1][axis] + a[2][axis] < b[0][axis] + b[1][axis] + b[2][axis];
  });
  return { { faces.begin(), middle }, { middle, faces.end() } };
}
Eigen::AlignedBox3d boxAround(const Spheres& spheres)
{
  Eigen::AlignedBox3d box;
  for (const SolidSphere& sphere : spheres)
  {
    box.extend(sphere.center - Eigen::Vector3d::Constant(sphere.radius));
    box.extend(sphere.center + Eigen::Vector3d::Constant(sphere.radius));
  }
  return box;
}

SolidSphere sphereAround(const Spheres& spheres)
{
  const Eigen::AlignedBox3d box = boxAround(spheres);
  SolidSphere result{ spheres.empty() ? Eigen::Vector3d(Eigen::Vector3d::Zero()) : Eigen::Vector3d(box.center()), -1.0 };
  for (const SolidSphere& sphere : spheres)
    result.radius = std::max(result.radius, (sphere.center - result.center).norm() + sphere.radius);
  return result;
}

/** The first sphere of each set of spheres that hang together. */
std::vector<std::size_t> partsOf(const Spheres& spheres)
{
  std::vector<std::size_t> parts;
  std::vector<bool> seen(spheres.size(), false);
  for (std::size_t first = 0; first < spheres.size(); ++first)
  {
    if (seen[first])
      continue;
    parts.push_back(first);
    std::vector<std::size_t> waiting{ first };
    seen[first] = true;
    while (!waiting.empty())
    {
      const SolidSphere& a = spheres[waiting.back()];
      waiting.pop_back();
      for (std::size_t i = 0; i < spheres.size(); ++i)
      {
        if (seen[i] || (spheres[i].center - a.center).norm() > spheres[i].radius + a.radius)
          continue;
        seen[i] = true;
        waiting.push_back(i);
      }
    }
  }
  return parts;
}
}  // namespace

double neededGrowth(const Spheres& spheres, const CoveredShape& shape)
{
  if (spheres.empty())
    return std::numeric_limits<double>::infinity();
  if (const auto* ball = dynamic_cast<const Ball*>(shape.solid.get()))
  {
    double least = std::numeric_limits<double>::infinity();
    for (const SolidSphere& sphere : spheres)
      least = std::min(least, (shape.pose.translation() - sphere.center).norm() + ball->radius() - sphere.radius);
    if (least <= CoverGrowth<Cover>::SOLID_TOLERANCE)
      return std::max(0.0, least);
  }
  const Cover cover(spheres);
  return CoverGrowth<Cover>(cover, true).over(shape);
}

Spheres plainCover(const CoveredShape& shape, std::size_t count)
{
  Spheres spheres;
  if (const auto* mesh = dynamic_cast<const TriangleMesh*>(shape.solid.get()))
    spheres = inHalves(mesh->faces(), count, sphereOf, splitFaces);
  else
  {
    using Cell = Eigen::AlignedBox3d;
    const auto sphere_of = [](const Cell& cell) { return SolidSphere{ cell.center(), 0.5 * cell.diagonal().norm() }; };
    const auto split = [](const Cell& cell) -> std::vector<Cell> {
      Eigen::Index axis;
      if (cell.sizes().maxCoeff(&axis) <= 0.0)
        return {};
      Cell lower = cell, upper = cell;
      lower.max()[axis] = upper.min()[axis] = cell.center()[axis];
      return { lower, upper };
    };
    spheres = inHalves(shape.solid->bounds(), count, sphere_of, split);
    spheres.erase(std::remove_if(spheres.begin(), spheres.end(),
                                 [&](const SolidSphere& sphere) {
                                   return shape.solid->distance(sphere.center, sphere.radius) >= sphere.radius;
                                 }),
                  spheres.end());
  }
  for (SolidSphere& sphere : spheres)
    sphere.center = shape.pose * sphere.center;
  return spheres;
}

void measureInner(Spheres& spheres, const CoveredShape& shape)
{
  const Eigen::Isometry3d inverse = shape.pose.inverse();
  for (SolidSphere& sphere : spheres)
    sphere.inner = std::min(sphere.radius,
                            std::max(sphere.inner, -shape.solid->closest(inverse * sphere.center).distance));
}

BodySpheres::BodySpheres(Spheres of_body)
  : spheres(std::move(of_body)), around(sphereAround(spheres)), box(boxAround(spheres)), parts(partsOf(spheres))
{
}
}  // namespace morphit_moveit
