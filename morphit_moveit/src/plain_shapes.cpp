#include <morphit_moveit/plain_shapes.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <morphit_moveit/convex.hpp>

namespace morphit_moveit
{
namespace
{
constexpr double FULL_TURN = 6.283185307179586;
// Of the size: what is a rounding error rather than a dent.
constexpr double FLAT = 1.0e-6;
constexpr double MOST_PAIRS = 3.0e7;
// Cells looked at for each box that may remain: walls along the grid join to few.
constexpr std::size_t CELLS_A_BOX = 16;

using Corner = std::tuple<double, double, double>;

/** A cell of a grid whose unit halves with each level. */
struct Cell
{
  Eigen::Array3i low;
  int size;  // in units
  bool full;
};

bool meets(const TriangleMesh& mesh, const Eigen::Vector3d& center, double edge)
{
  const Cuboid cell(Eigen::Vector3d::Constant(edge));
  const double tolerance = 1.0e-6 * edge;
  const PlacedConvex placed{ &cell, Eigen::Isometry3d(Eigen::Translation3d(center)), 0.0 };
  double reach = 0.5 * std::sqrt(3.0) * edge * (1.0 + FLAT);
  bool found = false;
  mesh.parts(center, reach, [&](const Convex& triangle, const Eigen::Vector3d& offset, double margin) {
    const PlacedConvex other{ &triangle, Eigen::Isometry3d(Eigen::Translation3d(offset)), margin };
    if (found || separation(placed, other, 10.0 * tolerance, tolerance).distance > tolerance)
      return;
    found = true;
    reach = 0.0;
  });
  return found;
}
}  // namespace

std::vector<Eigen::Vector3d> coneCorners(double radius, double length)
{
  constexpr int COUNT = 16;
  std::vector<Eigen::Vector3d> corners{ Eigen::Vector3d(0.0, 0.0, 0.5 * length) };
  const double reach = radius / std::cos(0.5 * FULL_TURN / COUNT);
  for (int i = 0; i < COUNT; ++i)
  {
    const double angle = FULL_TURN * i / COUNT;
    corners.emplace_back(reach * std::cos(angle), reach * std::sin(angle), -0.5 * length);
  }
  return corners;
}

Eigen::Isometry3d halfSpacePose(const Eigen::Vector3d& normal, double offset)
{
  const double length = normal.norm();
  if (!(std::isfinite(length) && length > 0.0 && std::isfinite(offset)))
    throw std::invalid_argument("a plane without a normal");
  Eigen::Isometry3d pose = Eigen::Isometry3d::Identity();
  pose.linear() = Eigen::Quaterniond::FromTwoVectors(Eigen::Vector3d::UnitZ(), normal / length).toRotationMatrix();
  pose.translation() = -offset / (length * length) * normal;
  return pose;
}

bool isConvex(const TriangleMesh& mesh)
{
  std::set<Corner> corners;
  for (const auto& face : mesh.faces())
    for (const Eigen::Vector3d& corner : face)
      corners.emplace(corner.x(), corner.y(), corner.z());
  if (!mesh.isClosed() || static_cast<double>(mesh.faces().size() * corners.size()) > MOST_PAIRS)
    return false;
  const double allowed = FLAT * mesh.bounds().diagonal().norm();
  return std::all_of(mesh.faces().begin(), mesh.faces().end(), [&](const auto& face) {
    const Eigen::Vector3d normal = (face[1] - face[0]).cross(face[2] - face[0]).normalized();
    const double height = normal.dot(face[0]) + allowed;
    return std::all_of(corners.begin(), corners.end(), [&](const Corner& corner) {
      return normal.x() * std::get<0>(corner) + normal.y() * std::get<1>(corner) + normal.z() * std::get<2>(corner) <=
             height;
    });
  });
}

std::vector<GridBox> joined(std::vector<GridBox> boxes)
{
  for (int axis = 0; axis < 3; ++axis)
  {
    const int b = (axis + 1) % 3, c = (axis + 2) % 3;
    const auto key = [&](const GridBox& box) {
      return std::make_tuple(box.low[b], box.high[b], box.low[c], box.high[c], box.low[axis]);
    };
    std::sort(boxes.begin(), boxes.end(), [&](const GridBox& one, const GridBox& other) { return key(one) < key(other); });
    std::vector<GridBox> longer;
    for (const GridBox& box : boxes)
    {
      if (!longer.empty())
      {
        GridBox& last = longer.back();
        if (last.high[axis] == box.low[axis] && last.low[b] == box.low[b] && last.high[b] == box.high[b] &&
            last.low[c] == box.low[c] && last.high[c] == box.high[c])
        {
          last.high[axis] = box.high[axis];
          continue;
        }
      }
      longer.push_back(box);
    }
    boxes = std::move(longer);
  }
  return boxes;
}

Boxes boxesOf(const TriangleMesh& mesh, std::size_t most, double finest)
{
  const Eigen::AlignedBox3d bounds = mesh.bounds();
  // A little larger, so that no side of the mesh is on a side of the grid.
  const double size = 1.001 * bounds.sizes().maxCoeff();
  Boxes result;
  result.origin = bounds.center() - Eigen::Vector3d::Constant(0.5 * size);
  result.edge = size;
  std::vector<Cell> cells{ { Eigen::Array3i::Zero(), 1, false } };
  result.boxes = { { Eigen::Array3i::Zero(), Eigen::Array3i::Ones() } };
  while (0.5 * result.edge >= finest)
  {
    const double edge = 0.5 * result.edge;
    std::vector<Cell> smaller;
    for (Cell& cell : cells)
    {
      cell.low *= 2;
      cell.size *= 2;
      if (cell.full)
      {
        smaller.push_back(cell);
        continue;
      }
      for (int child = 0; child < 8; ++child)
      {
        const Eigen::Array3i low = cell.low + Eigen::Array3i(child & 1, (child >> 1) & 1, child >> 2);
        const Eigen::Vector3d center = result.origin + edge * (low.cast<double>() + 0.5).matrix();
        const bool met = meets(mesh, center, edge);
        if (met || (mesh.isClosed() && mesh.contains(center)))
          smaller.push_back({ low, 1, !met });
      }
    }
    if (smaller.size() > CELLS_A_BOX * most)
      break;
    std::vector<GridBox> boxes;
    for (const Cell& cell : smaller)
      boxes.push_back({ cell.low, cell.low + cell.size });
    boxes = joined(std::move(boxes));
    if (boxes.size() > most)
      break;
    cells = std::move(smaller);
    result.boxes = std::move(boxes);
    result.edge = edge;
  }
  return result;
}
}  // namespace morphit_moveit
