#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>

#include <morphit_moveit/solids.hpp>

namespace morphit_moveit
{
namespace
{
using Face = std::array<Eigen::Vector3d, 3>;

// Height of a triangle by its longest edge.
constexpr double NEEDLE = 1.0e-12;

/** The point of a triangle nearest to a point, and the feature that it lies on (see TriangleMesh::Hit).
 *
 * The plane's point if its barycentric coordinates are all positive, otherwise the nearest point of an edge that it lies
 * behind.
 */
Eigen::Vector3d nearestOfTriangle(const Face& face, const Eigen::Vector3d& point, int& feature)
{
  const Eigen::Vector3d normal = (face[1] - face[0]).cross(face[2] - face[0]);
  double least = std::numeric_limits<double>::max();
  Eigen::Vector3d best = face[0];
  bool within = true;
  for (int i = 0; i < 3; ++i)
  {
    const Eigen::Vector3d& a = face[i];
    const Eigen::Vector3d edge = face[(i + 1) % 3] - a;
    const Eigen::Vector3d to = point - a;
    if (normal.dot(edge.cross(to)) > 0.0)
      continue;
    within = false;
    const double t = edge.dot(to) / edge.squaredNorm();
    const Eigen::Vector3d at = t <= 0.0 ? a : t >= 1.0 ? face[(i + 1) % 3] : Eigen::Vector3d(a + t * edge);
    const double squared = (point - at).squaredNorm();
    if (squared < least)
    {
      least = squared;
      best = at;
      feature = t <= 0.0 ? i : t >= 1.0 ? (i + 1) % 3 : 3 + i;
    }
  }
  if (!within)
    return best;
  feature = 6;
  return point - normal * (normal.dot(point - face[0]) / normal.squaredNorm());
}

double angleAt(const Face& face, int corner)
{
  const Eigen::Vector3d a = face[(corner + 1) % 3] - face[corner];
  const Eigen::Vector3d b = face[(corner + 2) % 3] - face[corner];
  return std::atan2(a.cross(b).norm(), a.dot(b));
}

struct ByCoordinates
{
  bool operator()(const Eigen::Vector3d& a, const Eigen::Vector3d& b) const
  {
    return std::lexicographical_compare(a.data(), a.data() + 3, b.data(), b.data() + 3);
  }
};
}  // namespace

TriangleMesh::TriangleMesh(const Vertices& vertices, const Triangles& triangles)
{
  // Corners are one where their coordinates are: files often repeat them.
  std::map<Eigen::Vector3d, std::uint32_t, ByCoordinates> known;
  std::vector<std::uint32_t> corner_of(vertices.size());
  for (std::size_t i = 0; i < vertices.size(); ++i)
  {
    if (!vertices[i].allFinite())
      throw std::invalid_argument("vertex " + std::to_string(i) + " of a mesh is not finite");
    corner_of[i] = known.emplace(vertices[i], static_cast<std::uint32_t>(known.size())).first->second;
  }

  Triangles corners;
  std::vector<Eigen::Vector3d> face_normals;
  std::vector<Eigen::Vector3d> corner_normals(known.size(), Eigen::Vector3d::Zero());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> edges;  // directed edge → faces
  for (const auto& triangle : triangles)
  {
    for (const std::uint32_t index : triangle)
      if (index >= vertices.size())
        throw std::invalid_argument("a triangle names vertex " + std::to_string(index) + " of a mesh with " +
                                    std::to_string(vertices.size()));
    const Face face{ vertices[triangle[0]], vertices[triangle[1]], vertices[triangle[2]] };
    const Eigen::Vector3d normal = (face[1] - face[0]).cross(face[2] - face[0]);
    const double longest = std::max({ (face[1] - face[0]).squaredNorm(), (face[2] - face[1]).squaredNorm(),
                                      (face[0] - face[2]).squaredNorm() });
    // A needle's normal is noise; its neighbours hold its edges.
    if (normal.norm() <= NEEDLE * longest)
      continue;
    const auto index = static_cast<std::uint32_t>(faces_.size());
    faces_.push_back(face);
    face_normals.push_back(normal.normalized());
    corners.push_back({ corner_of[triangle[0]], corner_of[triangle[1]], corner_of[triangle[2]] });
    for (int i = 0; i < 3; ++i)
    {
      corner_normals[corners.back()[i]] += angleAt(face, i) * face_normals.back();
      edges[{ corners.back()[i], corners.back()[(i + 1) % 3] }].push_back(index);
    }
  }
  if (faces_.empty())
    throw std::invalid_argument("a mesh has no triangle with an area");

  closed_ = true;
  double volume = 0.0;
  BoxTree::Boxes boxes;
  boxes.reserve(faces_.size());
  normals_.resize(faces_.size());
  for (std::size_t f = 0; f < faces_.size(); ++f)
  {
    volume += faces_[f][0].dot(faces_[f][1].cross(faces_[f][2]));
    normals_[f][6] = face_normals[f];
    for (int i = 0; i < 3; ++i)
    {
      const std::uint32_t a = corners[f][i], b = corners[f][(i + 1) % 3];
      normals_[f][i] = corner_normals[a];
      normals_[f][3 + i] = face_normals[f];
      const auto back = edges.find({ b, a });
      if (edges.at({ a, b }).size() == 1 && back != edges.end() && back->second.size() == 1)
        normals_[f][3 + i] += face_normals[back->second.front()];
      else
        closed_ = false;
    }
    Eigen::AlignedBox3d box(faces_[f][0]);
    box.extend(faces_[f][1]);
    box.extend(faces_[f][2]);
    boxes.push_back(box);
    bounds_.extend(box);
  }
  // Turned inside out, it would call the whole room its inside.
  closed_ = closed_ && volume > 0.0;
  tree_ = BoxTree(boxes);
}

TriangleMesh::Hit TriangleMesh::nearest(const Eigen::Vector3d& point, double& squared) const
{
  Hit hit{ static_cast<std::uint32_t>(faces_.size()), 6, point };
  tree_.nearest(point, squared, [&](std::uint32_t face, double& best) {
    int feature = 6;
    const Eigen::Vector3d at = nearestOfTriangle(faces_[face], point, feature);
    const double away = (point - at).squaredNorm();
    if (away < best)
    {
      best = away;
      hit = { face, feature, at };
    }
  });
  return hit;
}

double TriangleMesh::sign(const Eigen::Vector3d& point, const Hit& hit) const
{
  return closed_ && normals_[hit.face][hit.feature].dot(point - hit.point) < 0.0 ? -1.0 : 1.0;
}

double TriangleMesh::distance(const Eigen::Vector3d& point, double beyond) const
{
  if (beyond <= 0.0)
    return contains(point) ? closest(point).distance : std::max(beyond, 0.0);
  double squared = beyond * beyond;
  const Hit hit = nearest(point, squared);
  return hit.face < faces_.size() ? sign(point, hit) * std::sqrt(squared) : beyond;
}

bool TriangleMesh::touches(const Eigen::Vector3d& center, double radius) const
{
  return tree_.within(center, radius, [&](std::uint32_t face) {
    int feature = 6;
    return (center - nearestOfTriangle(faces_[face], center, feature)).squaredNorm() < radius * radius;
  });
}

bool TriangleMesh::contains(const Eigen::Vector3d& point) const
{
  return closed_ && bounds_.contains(point) && closest(point).distance < 0.0;
}

void TriangleMesh::parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const
{
  const auto limit = [&reach] { return reach > 0.0 ? reach * reach : 0.0; };
  double squared = limit();
  tree_.nearest(point, squared, [&](std::uint32_t face, double& best) {
    visit(ConvexPoints<3>(faces_[face]), Eigen::Vector3d::Zero(), 0.0);
    best = limit();
  });
}

Closest TriangleMesh::closest(const Eigen::Vector3d& point) const
{
  double squared = std::numeric_limits<double>::max();
  const Hit hit = nearest(point, squared);
  const double side = sign(point, hit), length = std::sqrt(squared);
  Eigen::Vector3d normal = length > 0.0 ? Eigen::Vector3d(side / length * (point - hit.point)) :
                                          normals_[hit.face][hit.feature].normalized();
  return { side * length, hit.point, normal };
}
}  // namespace morphit_moveit
