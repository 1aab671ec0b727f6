// Spheres of placed bodies against each other and against placed solids: the inner loops of the collision checks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <Eigen/Geometry>

#include <morphit_moveit/meeting.hpp>
#include <morphit_moveit/solids.hpp>
#include <morphit_moveit/sphere_cover.hpp>

namespace morphit_moveit
{
struct PlacedSolid
{
  PlacedSolid(SolidConstPtr solid, const Eigen::Isometry3d& pose);

  SolidConstPtr solid;
  Eigen::Isometry3d pose;      // in the model frame
  Eigen::Isometry3d inverse;   // of it
  Eigen::AlignedBox3d bounds;  // in its own frame
  Eigen::AlignedBox3d box;     // in the model frame
};

/** A body's spheres in the model frame. */
struct PlacedSpheres
{
  /** @param growth of the radii [m]
   *  @param trust_inner whether the balls within the geometry count
   *  @param rows room for four times as many numbers as there are spheres */
  PlacedSpheres(const BodySpheres& body, const Eigen::Isometry3d& pose, double growth, bool trust_inner, double* rows);

  const BodySpheres* body;
  const Eigen::Isometry3d* pose;
  Eigen::Vector3d center;  // of the sphere around all of them
  double radius;           // of it, grown
  double growth;
  double inner;  // 1, or 0 where balls within the geometry do not count
  // Each in a row, so that the compiler takes several at once. Filled by `place`.
  double* x;
  double* y;
  double* z;
  double* radii;  // grown

  std::size_t size() const
  {
    return body->spheres.size();
  }

  /** Fill the rows, once: most bodies are ruled out by the sphere around them. Not for several threads at once. */
  void place() const
  {
    if (!placed_)
      fill();
  }

private:
  void fill() const;

  mutable bool placed_ = false;
};

/** What spheres tell of a pair. */
enum class Verdict
{
  FREE,       // no cover touches
  UNDECIDED,  // covers touch
  COLLIDING   // so do balls within the geometry
};

/** Of a body and a solid; with `decide` the first touch ends the search, otherwise one of the geometry.
 *
 * Without `decide` nothing is inside of a mesh, as FCL has it.
 */
Verdict verdict(const PlacedSpheres& body, const PlacedSolid& solid, bool decide);

/** Whether the sphere around a body comes near the box around another. */
inline bool reaches(const PlacedSpheres& a, const PlacedSpheres& b)
{
  const double reach = a.radius + b.growth;
  return b.body->box.squaredExteriorDistance(b.pose->inverse(Eigen::Isometry) * a.center) <= reach * reach;
}

/** Whether what is around two bodies overlaps: their spheres may. */
inline bool overlap(const PlacedSpheres& a, const PlacedSpheres& b)
{
  const double reach = a.radius + b.radius;
  return (a.center - b.center).squaredNorm() <= reach * reach && reaches(a, b) && reaches(b, a);
}

/** Calls visit(i, j, squared distance of the centres) for spheres of two bodies that are less than `beyond` apart, until it
 * returns true. */
template <class Visit>
void nearSpheres(const PlacedSpheres& a, const PlacedSpheres& b, double beyond, Visit&& visit)
{
  a.place();
  b.place();
  // Of b, those that come near the sphere around a, in rows.
  thread_local std::vector<double> rows;
  thread_local std::vector<std::uint32_t> indices;
  if (rows.size() < 4 * b.size())
  {
    rows.resize(4 * b.size());
    indices.resize(b.size());
  }
  double* __restrict const x = rows.data();
  double* __restrict const y = x + b.size();
  double* __restrict const z = y + b.size();
  double* __restrict const reach = z + b.size();
  std::uint32_t* __restrict const index = indices.data();
  std::size_t count = 0;
  const double ox = a.center.x(), oy = a.center.y(), oz = a.center.z(), around = a.radius + beyond;
  for (std::size_t j = 0; j < b.size(); ++j)
  {
    const double bx = b.x[j], by = b.y[j], bz = b.z[j], radius = b.radii[j];
    const double dx = bx - ox, dy = by - oy, dz = bz - oz, limit = radius + around;
    if (dx * dx + dy * dy + dz * dz >= limit * limit)
      continue;
    x[count] = bx;
    y[count] = by;
    z[count] = bz;
    reach[count] = radius + beyond;
    index[count++] = static_cast<std::uint32_t>(j);
  }
  if (count == 0)
    return;
  for (std::size_t i = 0; i < a.size(); ++i)
  {
    const double ax = a.x[i], ay = a.y[i], az = a.z[i], radius = a.radii[i];
    const double dx = ax - b.center.x(), dy = ay - b.center.y(), dz = az - b.center.z();
    const double limit = radius + b.radius + beyond;
    if (dx * dx + dy * dy + dz * dz >= limit * limit)
      continue;
    // First whether there is any, several at once.
    const auto row = [count](const double* values) { return Eigen::Map<const Eigen::ArrayXd>(values, count); };
    if (((row(x) - ax).square() + (row(y) - ay).square() + (row(z) - az).square() - (row(reach) + radius).square())
            .minCoeff() >= 0.0)
      continue;
    for (std::size_t k = 0; k < count; ++k)
    {
      const double ex = x[k] - ax, ey = y[k] - ay, ez = z[k] - az, near = reach[k] + radius;
      const double squared = ex * ex + ey * ey + ez * ez;
      if (squared < near * near && visit(i, static_cast<std::size_t>(index[k]), squared))
        return;
    }
  }
}

/** Of two bodies; at the first touch `matters()` is asked whether to go on. */
template <class Matters>
Verdict verdict(const PlacedSpheres& a, const PlacedSpheres& b, Matters&& matters)
{
  Verdict result = Verdict::FREE;
  nearSpheres(a, b, 0.0, [&](std::size_t i, std::size_t j, double squared) {
    if (result == Verdict::FREE && !matters())
      return true;
    const double in_a = a.inner * a.body->spheres[i].inner, in_b = b.inner * b.body->spheres[j].inner;
    const bool known = in_a > 0.0 && in_b > 0.0;
    result = known && squared < (in_a + in_b) * (in_a + in_b) ? Verdict::COLLIDING : Verdict::UNDECIDED;
    return result == Verdict::COLLIDING;
  });
  return result;
}

/** Whether any sphere of a body touches another sphere. */
bool touches(const PlacedSpheres& body, const Eigen::Vector3d& center, double radius);

/** At most `count` of the deepest meetings of spheres with a solid that they touch. */
std::vector<Meeting> meetings(const PlacedSpheres& body, const PlacedSolid& solid, std::size_t count);

/** At most `count` of the deepest meetings of the spheres of two bodies. */
std::vector<Meeting> meetings(const PlacedSpheres& a, const PlacedSpheres& b, std::size_t count);

/** The nearest meeting if it is less than `limit` away; whether there is one. */
bool nearest(const PlacedSpheres& body, const PlacedSolid& solid, double limit, Meeting& meeting);
bool nearest(const PlacedSpheres& a, const PlacedSpheres& b, double limit, Meeting& meeting);
}  // namespace morphit_moveit
