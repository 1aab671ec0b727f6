#include <morphit_moveit/convex.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace morphit_moveit
{
namespace
{
constexpr int SECTIONS = 25;
constexpr int ROOT_STEPS = 60;
// Angle that ends a search [rad]: the next step would be its square.
constexpr double LAST_STEP = 1.0e-8;
// Of a bracket between two sections in which a peak may be.
constexpr int PARTS = 4;
// A peak between two sections may be so much higher than they are, as a part of the shape's size along the direction.
constexpr double SLACK = 0.02;

/** The norm of two numbers ≥ 0, the two divided by it, and the powers p − 1 of those: the norm's gradient. */
struct Norm
{
  double n;
  double x;
  double y;
  double dx;
  double dy;
};

Norm norm(double a, double b, double p)
{
  const double high = std::max(a, b);
  if (high == 0.0)
    return { 0.0, 0.0, 0.0, 0.0, 0.0 };
  if (p == 2.0)
  {
    const double n = std::sqrt(a * a + b * b);
    return { n, a / n, b / n, a / n, b / n };
  }
  const double low = std::min(a, b), ratio = low / high;
  const double power = ratio > 1.0e-280 ? std::pow(ratio, p - 1.0) : 0.0;
  const double root = std::pow(1.0 + ratio * power, 1.0 / p);
  const double slope = root / (1.0 + ratio * power);
  if (a < b)
    return { high * root, ratio / root, 1.0 / root, power * slope, slope };
  return { high * root, 1.0 / root, ratio / root, slope, power * slope };
}

double cross(double c1, double s1, double c2, double s2)
{
  return c1 * s2 - s1 * c2;
}

void check(const char* name, const double* values, int count, double low, double high)
{
  for (int i = 0; i < count; ++i)
    if (!(values[i] >= low && values[i] <= high))
      throw std::invalid_argument(std::string("a superovoid's ") + name + " is " + std::to_string(values[i]));
}
}  // namespace

Superovoid::Superovoid(const Eigen::Vector3d& axes, const Eigen::Vector2d& squareness, const Eigen::Vector2d& tapering)
  : axes_(axes), squareness_(squareness), tapering_(tapering)
{
  check("semi-axis", axes.data(), 3, 1.0e-9, 1.0e9);
  check("squareness", squareness.data(), 2, 0.1, 1.9);
  check("tapering", tapering.data(), 2, -0.5, 0.5);
  for (int i = 0; i < 2; ++i)
  {
    dual_[i] = 2.0 / (2.0 - squareness[i]);
    chart_[i] = 2.0 / std::min(squareness[i], 2.0 - squareness[i]);
  }
  if (!mayBeDented())
    return;
  for (int k = 0; k < SECTIONS; ++k)
  {
    const double angle = M_PI * (static_cast<double>(k) / (SECTIONS - 1) - 0.5);
    double c = std::max(std::cos(angle), 0.0), s = std::abs(std::sin(angle));
    if (k == 0 || k == SECTIONS - 1)
      c = 0.0;
    if (k == SECTIONS / 2)
      s = 0.0;
    // At even angles of the section's place: where the chart follows the normal, that of this place.
    if (squareness_[1] >= 1.0)
    {
      const Norm place = norm(c, s, chart_[1] / (chart_[1] - 1.0));
      c = place.dx;
      s = place.dy;
    }
    const double length = std::hypot(c, s);
    sections_.push_back(section({ c / length, (2 * k < SECTIONS ? -s : s) / length }));
  }
}

/** False only of a convex shape: where r(s) m(s) is concave for every direction in the plane. */
bool Superovoid::mayBeDented() const
{
  const double tx = tapering_.x(), ty = tapering_.y(), q = 2.0 / squareness_[1];
  if (tx == 0.0 && ty == 0.0)
    return false;
  if (tx == ty)
    return std::abs(tx) > (1.0 - 1.0e-12) * (q - 1.0) * std::pow(2.0, 1.0 / q) / q;
  // The section's curvature vanishes at the equator, that of the tapering doesn't.
  if (q > 2.0)
    return true;
  // m' / m and m'' / m are bounded over all directions.
  const double bend = 0.25 * (dual_[0] - 1.0) * (tx - ty) * (tx - ty);
  for (int k = 1; k < 64; ++k)
  {
    const double s = k / 64.0 * (2.0 - k / 64.0), rest = 1.0 - std::pow(s, q);
    for (const double side : { -1.0, 1.0 })
    {
      const double fx = 1.0 + side * tx * s, fy = 1.0 + side * ty * s;
      const double slope = std::max(-side * tx / fx, -side * ty / fy);
      const double curve = bend / (fx * fx * fy * fy) * std::pow(s, 2.0 - q) * rest * rest;
      if (2.0 * std::max(slope, 0.0) * s * rest + curve > 0.97 * (q - 1.0))
        return true;
    }
  }
  return false;
}

Superovoid::Section Superovoid::section(const Chart& chart) const
{
  const Norm place = norm(chart.c, std::abs(chart.s), chart_[1]);
  const bool by_place = squareness_[1] < 1.0;
  const double r = by_place ? place.x : place.dx, q = by_place ? place.y : place.dy;
  const double v = by_place ? place.dx : place.x, w = by_place ? place.dy : place.y;
  return { r, chart.s < 0.0 ? -q : q, v, chart.s < 0.0 ? -w : w, chart };
}

Superovoid::Height Superovoid::height(const Query& query, const Section& section) const
{
  const double fx = 1.0 + tapering_.x() * section.q, fy = 1.0 + tapering_.y() * section.q;
  const Norm plane = norm(query.a * fx, query.b * fy, dual_[0]);
  const double growth = plane.dx * query.a * tapering_.x() + plane.dy * query.b * tapering_.y();
  return { section.r * plane.n + section.q * query.z,
           section.w * plane.n - section.v * (query.z + section.r * growth) };
}

/** A section that maximises the height within a bracket, by Newton steps that stay within it. */
Superovoid::Chart Superovoid::peak(const Query& query, Chart at, Chart low, Chart high) const
{
  const double k = chart_[1], tx = tapering_.x(), ty = tapering_.y();
  const double bend = query.a * query.b * (tx - ty) * (tx - ty) * (dual_[0] - 1.0);
  for (int i = 0; i < ROOT_STEPS; ++i)
  {
    const double sign = at.s < 0.0 ? -1.0 : 1.0, s = std::abs(at.s);
    const Norm chart = norm(at.c, s, k);
    // Place (r, q) and normal (v, w) of the section, and how they change as it turns towards +z.
    double r = chart.x, q = chart.y, v = chart.dx, w = chart.dy;
    const double dn = (w * at.c - v * s) / chart.n;
    double dr = -s / chart.n - r * dn, dq = at.c / chart.n - q * dn;
    double dv = (k - 1.0) * (r > 0.0 ? v / r : (k > 2.0 ? 0.0 : 1.0)) * dr;
    double dw = (k - 1.0) * (q > 0.0 ? w / q : (k > 2.0 ? 0.0 : 1.0)) * dq;
    if (squareness_[1] >= 1.0)
    {
      std::swap(r, v);
      std::swap(q, w);
      std::swap(dr, dv);
      std::swap(dq, dw);
    }
    q *= sign;
    w *= sign;
    dr *= sign;
    dv *= sign;
    const double fx = 1.0 + tx * q, fy = 1.0 + ty * q;
    const Norm plane = norm(query.a * fx, query.b * fy, dual_[0]);
    const double m = plane.n, m1 = plane.dx * query.a * tx + plane.dy * query.b * ty;
    const double m2 = m > 0.0 ? bend * plane.dx * plane.dy / (fx * fy * m) : 0.0;
    // The height rises towards +z where this is negative.
    const double weight = query.z + r * m1, residual = w * m - v * weight;
    const double slope = dw * m + w * m1 * dq - dv * weight - v * (dr * m1 + r * m2 * dq);
    (residual < 0.0 ? low : high) = at;
    if (residual == 0.0)
      break;
    double step = slope > 0.0 ? -residual / slope : 2.0;
    Chart next{ at.c - step * at.s, at.s + step * at.c };
    if (std::abs(step) < LAST_STEP)
    {
      // Before the bracket is asked: a step as short as rounding does not stay within it.
      at = next.c > 0.0 ? next : Chart{ 0.0, sign };
      break;
    }
    if (!(std::abs(step) < 0.7 && next.c >= 0.0 && cross(low.c, low.s, next.c, next.s) > 0.0 &&
          cross(next.c, next.s, high.c, high.s) > 0.0))
    {
      next = { low.c + high.c, low.s + high.s };
      if (next.c * next.c + next.s * next.s < 1.0e-4)
        next = { 1.0, 0.0 };
    }
    const double length = std::hypot(next.c, next.s);
    next = { next.c / length, next.s / length };
    const double moved = std::abs(next.c - at.c) + std::abs(next.s - at.s);
    at = next;
    if (moved < 1.0e-15)
      break;
  }
  const double length = std::hypot(at.c, at.s);
  return { at.c / length, at.s / length };
}

Superovoid::Chart Superovoid::between(const Chart& from, const Chart& to, double share)
{
  const double c = from.c + share * (to.c - from.c), s = from.s + share * (to.s - from.s), length = std::hypot(c, s);
  return { c / length, s / length };
}

/** The highest section, from a start near to it; of a shape that may have a dent the highest of several peaks. */
Superovoid::Section Superovoid::best(const Query& query, const Chart& start) const
{
  const Chart bottom{ 0.0, -1.0 }, top{ 0.0, 1.0 };
  if (sections_.empty())
    return section(peak(query, start, bottom, top));
  std::array<Height, SECTIONS> heights;
  std::size_t highest = 0;
  for (std::size_t k = 0; k < SECTIONS; ++k)
  {
    heights[k] = height(query, sections_[k]);
    if (heights[k].value > heights[highest].value)
      highest = k;
  }
  Section found = sections_[highest];
  double best_height = heights[highest].value;
  const double enough = best_height - SLACK * (std::max(query.a, query.b) + std::abs(query.z));
  const auto follow = [&](const Section& low, const Section& high, const Height& at_low, const Height& at_high) {
    if (at_low.fall > 0.0 || at_high.fall < 0.0)
      return;
    const Section other = section(peak(query, between(low.chart, high.chart, 0.5), low.chart, high.chart));
    const double other_height = height(query, other).value;
    if (other_height <= best_height)
      return;
    best_height = other_height;
    found = other;
  };
  for (std::size_t k = 0; k + 1 < SECTIONS; ++k)
  {
    if (std::max(heights[k].value, heights[k + 1].value) < enough)
      continue;
    // In parts, for two peaks may be near to each other, as those beside a dent at the equator.
    Section low = sections_[k];
    Height at_low = heights[k];
    for (int part = 1; part < PARTS; ++part)
    {
      const Section next = section(between(sections_[k].chart, sections_[k + 1].chart, static_cast<double>(part) / PARTS));
      const Height at_next = height(query, next);
      follow(low, next, at_low, at_next);
      low = next;
      at_low = at_next;
    }
    follow(low, sections_[k + 1], at_low, heights[k + 1]);
  }
  return found;
}

bool Superovoid::contains(const Eigen::Vector3d& point) const
{
  const double z = std::abs(point.z()) / axes_.z();
  if (z > 1.0)
    return false;
  const double fx = 1.0 + tapering_.x() * point.z() / axes_.z(), fy = 1.0 + tapering_.y() * point.z() / axes_.z();
  const double plane =
      norm(std::abs(point.x()) / (axes_.x() * fx), std::abs(point.y()) / (axes_.y() * fy), 2.0 / squareness_[0]).n;
  return norm(plane, z, 2.0 / squareness_[1]).n <= 1.0;
}

Eigen::Vector3d Superovoid::support(const Eigen::Vector3d& direction) const
{
  // Powers of numbers that are neither too small nor too great.
  const Eigen::Vector3d scaled = axes_.cwiseProduct(direction / direction.cwiseAbs().maxCoeff());
  const Query query{ std::abs(scaled.x()), std::abs(scaled.y()), scaled.z() };
  Norm plane = norm(query.a, query.b, dual_[0]);
  const Norm outer = norm(plane.n, std::abs(query.z), dual_[1]);
  // Of the dual norm: its point is the normal, its gradient the place.
  double r = outer.dx, q = query.z < 0.0 ? -outer.dy : outer.dy;
  double fx = 1.0, fy = 1.0;
  if (!tapering_.isZero(0.0))
  {
    const bool by_place = squareness_[1] < 1.0;
    const double c = by_place ? outer.dx : outer.x, s = by_place ? outer.dy : outer.y, length = std::hypot(c, s);
    const Section found = best(query, { c / length, (query.z < 0.0 ? -s : s) / length });
    r = found.r;
    q = found.q;
    fx += tapering_.x() * q;
    fy += tapering_.y() * q;
    plane = norm(query.a * fx, query.b * fy, dual_[0]);
  }
  return { std::copysign(axes_.x() * r * plane.dx * fx, direction.x()),
           std::copysign(axes_.y() * r * plane.dy * fy, direction.y()), axes_.z() * q };
}
}  // namespace morphit_moveit
