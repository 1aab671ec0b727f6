#include <morphit_moveit/convex.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace morphit_moveit
{
namespace
{
constexpr int APPROACH_STEPS = 200;
constexpr int POLYTOPE_STEPS = 200;
// What counts as flat, relative to the size.
constexpr double FLAT = 1.0e-10;

/** A point of the difference set, second − first, and the points that it is the difference of. */
struct Vertex
{
  Eigen::Vector3d difference;
  Eigen::Vector3d first;
  Eigen::Vector3d second;
};

Vertex farthest(const PlacedConvex& first, const PlacedConvex& second, const Eigen::Vector3d& direction)
{
  const Eigen::Vector3d a = first.support(-direction), b = second.support(direction);
  return { b - a, a, b };
}

/** Up to four corners and the weights of the point of their hull that is nearest to the origin. */
class Simplex
{
public:
  int size() const
  {
    return size_;
  }
  const Vertex& operator[](int i) const
  {
    return corners_[i];
  }

  bool has(const Eigen::Vector3d& difference) const
  {
    for (int i = 0; i < size_; ++i)
      if (corners_[i].difference == difference)
        return true;
    return false;
  }

  void add(const Vertex& vertex)
  {
    corners_[size_++] = vertex;
  }

  /** Keep the corners that carry the nearest point; false if the origin is inside. */
  bool reduce()
  {
    weights_.fill(0.0);
    if (size_ == 1)
      weights_[0] = 1.0;
    else if (size_ == 2)
      segment(0, 1);
    else if (size_ == 3)
      triangle(0, 1, 2);
    else if (!tetrahedron())
      return false;
    int kept = 0;
    for (int i = 0; i < size_; ++i)
    {
      if (weights_[i] <= 0.0)
        continue;
      corners_[kept] = corners_[i];
      weights_[kept++] = weights_[i];
    }
    size_ = kept;
    return true;
  }

  template <class Part>
  Eigen::Vector3d nearest(Part part) const
  {
    Eigen::Vector3d point = Eigen::Vector3d::Zero();
    for (int i = 0; i < size_; ++i)
      point += weights_[i] * corners_[i].*part;
    return point;
  }

private:
  using Weights = std::array<double, 4>;

  const Eigen::Vector3d& at(int i) const
  {
    return corners_[i].difference;
  }

  double segment(int i, int j)
  {
    const Eigen::Vector3d edge = at(j) - at(i);
    const double squared = edge.squaredNorm();
    const double t = squared > 0.0 ? std::clamp(-at(i).dot(edge) / squared, 0.0, 1.0) : 0.0;
    weights_[i] = 1.0 - t;
    weights_[j] = t;
    return (at(i) + t * edge).squaredNorm();
  }

  double triangle(int i, int j, int k)
  {
    const Eigen::Vector3d b = at(j) - at(i), c = at(k) - at(i), normal = b.cross(c);
    const double squared = normal.squaredNorm();
    if (squared > 0.0)
    {
      const double v = -at(i).cross(c).dot(normal) / squared, w = -b.cross(at(i)).dot(normal) / squared;
      if (v >= 0.0 && w >= 0.0 && v + w <= 1.0)
      {
        weights_[i] = 1.0 - v - w;
        weights_[j] = v;
        weights_[k] = w;
        return (at(i) + v * b + w * c).squaredNorm();
      }
    }
    double best = std::numeric_limits<double>::max();
    Weights kept = weights_;
    for (const auto& [from, to, other] : { std::array{ i, j, k }, std::array{ i, k, j }, std::array{ j, k, i } })
    {
      const double distance = segment(from, to);
      weights_[other] = 0.0;
      if (distance >= best)
        continue;
      best = distance;
      kept = weights_;
    }
    weights_ = kept;
    return best;
  }

  bool tetrahedron()
  {
    const auto volume = [this](int i, int j, int k, const Eigen::Vector3d& point) {
      return (at(i) - point).dot((at(j) - point).cross(at(k) - point));
    };
    double best = std::numeric_limits<double>::max();
    Weights kept{};
    for (int face = 0; face < 4; ++face)
    {
      const int i = (face + 1) % 4, j = (face + 2) % 4, k = (face + 3) % 4;
      const double apex = volume(i, j, k, at(face)), origin = volume(i, j, k, Eigen::Vector3d::Zero());
      // A flat tetrahedron has no inside: all its faces are tried.
      if (apex != 0.0 && origin != 0.0 && (apex > 0.0) == (origin > 0.0))
        continue;
      weights_.fill(0.0);
      const double distance = triangle(i, j, k);
      if (distance >= best)
        continue;
      best = distance;
      kept = weights_;
    }
    weights_ = kept;
    return best < std::numeric_limits<double>::max();
  }

  int size_ = 0;
  std::array<Vertex, 4> corners_;
  Weights weights_{};
};

/** The way of a point of the difference set towards the origin. */
class Approach
{
public:
  /** Until the distance is known to `tolerance`, or to be at least `beyond` [m]. */
  Approach(const PlacedConvex& first, const PlacedConvex& second, double beyond, double tolerance)
  {
    Eigen::Vector3d direction = first.pose.translation() - second.pose.translation();
    if (direction.isZero(0.0))
      direction = Eigen::Vector3d::UnitX();
    simplex_.add(farthest(first, second, direction));
    simplex_.reduce();
    size_ = difference().norm();
    for (int step = 0; step < APPROACH_STEPS; ++step)
    {
      const Eigen::Vector3d point = difference();
      const double length = point.norm();
      overlap_ = length <= FLAT * size_;
      if (overlap_)
        return;
      const Vertex vertex = farthest(first, second, -point);
      size_ = std::max(size_, vertex.difference.norm());
      lower_ = std::max(lower_, vertex.difference.dot(point) / length);
      if (lower_ >= beyond || length - lower_ < tolerance || simplex_.has(vertex.difference))
        return;
      simplex_.add(vertex);
      overlap_ = !simplex_.reduce();
      if (overlap_)
        return;
    }
  }

  bool overlap() const
  {
    return overlap_;
  }
  /** The distance is not below this [m]. */
  double lower() const
  {
    return lower_;
  }
  /** Greatest length met in the difference set [m]. */
  double size() const
  {
    return size_;
  }
  const Simplex& simplex() const
  {
    return simplex_;
  }
  Eigen::Vector3d difference() const
  {
    return simplex_.nearest(&Vertex::difference);
  }
  Eigen::Vector3d first() const
  {
    return simplex_.nearest(&Vertex::first);
  }
  Eigen::Vector3d second() const
  {
    return simplex_.nearest(&Vertex::second);
  }

private:
  Simplex simplex_;
  double lower_ = -std::numeric_limits<double>::max();
  double size_ = 0.0;
  bool overlap_ = false;
};

/** A polytope within the difference set, around the origin, whose nearest face is moved outwards until it is at the surface. */
class Polytope
{
public:
  Polytope(const PlacedConvex& first, const PlacedConvex& second) : first_(first), second_(second)
  {
  }

  /** Start from a simplex that holds the origin; false where the set is flat. */
  bool start(const Simplex& simplex, double size)
  {
    for (int i = 0; i < simplex.size(); ++i)
      vertices_.push_back(simplex[i]);
    while (vertices_.size() < 4)
      if (!widen(size))
        return false;
    const Eigen::Vector3d& a = at(0);
    if ((at(1) - a).cross(at(2) - a).dot(at(3) - a) > 0.0)
      std::swap(vertices_[1], vertices_[2]);
    // Faces look outwards: counter-clockwise, seen from there.
    for (const auto& [i, j, k] : { std::array{ 0, 1, 2 }, std::array{ 0, 3, 1 }, std::array{ 0, 2, 3 }, std::array{ 1, 3, 2 } })
      addFace(i, j, k);
    return true;
  }

  /** The least translation that draws the shapes apart, by less than `tolerance` too long. */
  Meeting expand(double tolerance)
  {
    Meeting best{ -std::numeric_limits<double>::max(), {}, {}, Eigen::Vector3d::UnitZ() };
    for (int step = 0; step < POLYTOPE_STEPS; ++step)
    {
      std::size_t nearest = faces_.size();
      for (std::size_t i = 0; i < faces_.size(); ++i)
        if (faces_[i].alive && (nearest == faces_.size() || faces_[i].distance < faces_[nearest].distance))
          nearest = i;
      if (nearest == faces_.size() || faces_[nearest].normal.isZero(0.0))
        break;
      const Face face = faces_[nearest];
      const Vertex vertex = farthest(first_, second_, face.normal);
      const double depth = face.normal.dot(vertex.difference);
      if (depth - face.distance < tolerance)
        return solution(face, depth);
      if (-depth > best.distance)
        best = solution(face, depth);
      if (!insert(vertex))
        break;
    }
    return best;
  }

private:
  struct Face
  {
    std::array<std::uint32_t, 3> corners;
    Eigen::Vector3d normal;
    double distance;  // of its plane from the origin
    bool alive;
  };

  const Eigen::Vector3d& at(std::size_t i) const
  {
    return vertices_[i].difference;
  }

  bool widen(double size)
  {
    std::vector<Eigen::Vector3d> directions;
    if (vertices_.size() == 3)
    {
      const Eigen::Vector3d normal = (at(1) - at(0)).cross(at(2) - at(0)).normalized();
      directions = { normal, -normal };
    }
    else if (vertices_.size() == 2)
    {
      const Eigen::Vector3d across = (at(1) - at(0)).unitOrthogonal(), other = (at(1) - at(0)).cross(across).normalized();
      directions = { across, -across, other, -other };
    }
    else
      directions = { Eigen::Vector3d::UnitX(), -Eigen::Vector3d::UnitX(), Eigen::Vector3d::UnitY(),
                     -Eigen::Vector3d::UnitY(), Eigen::Vector3d::UnitZ(), -Eigen::Vector3d::UnitZ() };
    for (const Eigen::Vector3d& direction : directions)
    {
      const Vertex vertex = farthest(first_, second_, direction);
      const Eigen::Vector3d offset = vertex.difference - at(0);
      double out = offset.norm();
      if (vertices_.size() == 2)
        out = (offset - offset.dot((at(1) - at(0)).normalized()) * (at(1) - at(0)).normalized()).norm();
      else if (vertices_.size() == 3)
        out = std::abs(offset.dot(direction));
      if (out <= FLAT * size)
        continue;
      vertices_.push_back(vertex);
      return true;
    }
    return false;
  }

  void addFace(std::uint32_t i, std::uint32_t j, std::uint32_t k)
  {
    const Eigen::Vector3d normal = (at(j) - at(i)).cross(at(k) - at(i));
    const double length = normal.norm();
    // A face without an area has no plane of its own: its neighbours stand for it.
    if (!(length > 0.0))
      return faces_.push_back({ { i, j, k }, Eigen::Vector3d::Zero(), std::numeric_limits<double>::max(), true });
    faces_.push_back({ { i, j, k }, normal / length, normal.dot(at(i)) / length, true });
  }

  /** Put a vertex on top of the faces that see it; false if none does. */
  bool insert(const Vertex& vertex)
  {
    const auto index = static_cast<std::uint32_t>(vertices_.size());
    vertices_.push_back(vertex);
    std::vector<std::array<std::uint32_t, 2>> rim;
    for (Face& face : faces_)
    {
      if (!face.alive || face.normal.dot(vertex.difference - at(face.corners[0])) <= 0.0)
        continue;
      face.alive = false;
      for (int i = 0; i < 3; ++i)
      {
        const std::array edge{ face.corners[i], face.corners[(i + 1) % 3] };
        const auto twin = std::find(rim.begin(), rim.end(), std::array{ edge[1], edge[0] });
        if (twin == rim.end())
          rim.push_back(edge);
        else
          rim.erase(twin);
      }
    }
    for (const auto& [i, j] : rim)
      addFace(i, j, index);
    return !rim.empty();
  }

  Meeting solution(const Face& face, double depth) const
  {
    // Where the origin is over the face; near its edge as far as it goes.
    Simplex corners;
    for (const std::uint32_t i : face.corners)
    {
      Vertex corner = vertices_[i];
      corner.difference -= face.distance * face.normal;
      corners.add(corner);
    }
    corners.reduce();
    // The shapes have to move along the normal: what is deepest in the other one is ahead.
    return { -depth, corners.nearest(&Vertex::first), corners.nearest(&Vertex::second), -face.normal };
  }

  const PlacedConvex& first_;
  const PlacedConvex& second_;
  std::vector<Vertex> vertices_;
  std::vector<Face> faces_;
};
}  // namespace

Meeting separation(const PlacedConvex& first, const PlacedConvex& second, double beyond, double tolerance)
{
  const double margins = first.margin + second.margin;
  const Approach approach(first, second, beyond + margins, tolerance);
  Meeting found{ 0.0, approach.first(), approach.second(), Eigen::Vector3d::UnitZ() };
  if (!approach.overlap())
  {
    found.distance = approach.lower();
    found.normal = approach.difference().normalized();
  }
  else
  {
    // Without a start both are flat, in one plane: any way across it draws them apart.
    Polytope polytope(first, second);
    if (polytope.start(approach.simplex(), approach.size()))
      found = polytope.expand(tolerance);
  }
  found.distance -= margins;
  found.first += first.margin * found.normal;
  found.second -= second.margin * found.normal;
  return found;
}

double outside(const PlacedConvex& shape, const Eigen::Vector3d& point, double tolerance)
{
  const ConvexPoints<1> origin({ Eigen::Vector3d::Zero() });
  const PlacedConvex other{ &origin, Eigen::Isometry3d(Eigen::Translation3d(point)), 0.0 };
  const Approach approach(shape, other, std::numeric_limits<double>::max(), tolerance);
  return approach.overlap() ? 0.0 : approach.difference().norm();
}
}  // namespace morphit_moveit
