#include <morphit_moveit/world_shapes.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>

#include <octomap/octomap.h>

namespace morphit_moveit
{
namespace
{
/** The occupied cells of an octree, walked as they are: nothing is made anew when a camera's map changes. */
class OccupiedCells : public Solid
{
public:
  explicit OccupiedCells(std::shared_ptr<const octomap::OcTree> tree) : tree_(std::move(tree))
  {
  }

  Eigen::AlignedBox3d bounds() const override
  {
    // The size of the map is kept up by who changes it; asked for here, it would be computed in a shared map.
    const double half = 0.5 * tree_->getNodeSize(0);
    return { Eigen::Vector3d::Constant(-half), Eigen::Vector3d::Constant(half) };
  }

  double distance(const Eigen::Vector3d& point, double beyond) const override
  {
    Closest best{ beyond, point, Eigen::Vector3d::UnitZ() };
    search(point, best);
    return best.distance;
  }

  Closest closest(const Eigen::Vector3d& point) const override
  {
    Closest best{ std::numeric_limits<double>::max(), point, Eigen::Vector3d::UnitZ() };
    search(point, best);
    return best;
  }

  void parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const override
  {
    search(point, reach, [&](const Cuboid& cell, const Eigen::Vector3d& center) { visit(cell, center, 0.0); });
  }

private:
  void search(const Eigen::Vector3d& point, Closest& best) const
  {
    search(point, best.distance, [&](const Cuboid& cell, const Eigen::Vector3d& center) {
      best = cell.closest(point - center);
      best.point += center;
    });
  }

  /** Calls visit with the occupied cells, and their centres, that are less than `reach` away, the nearest children first. */
  template <class Visit>
  void search(const Eigen::Vector3d& point, const double& reach, const Visit& visit) const
  {
    if (const octomap::OcTreeNode* root = tree_->getRoot())
      search(*root, Eigen::Vector3d::Zero(), 0.5 * tree_->getNodeSize(0), point, reach, visit);
  }

  template <class Visit>
  void search(const octomap::OcTreeNode& node, const Eigen::Vector3d& center, double half, const Eigen::Vector3d& point,
              const double& reach, const Visit& visit) const
  {
    const Cuboid cell(Eigen::Vector3d::Constant(2.0 * half));
    if (cell.distance(point - center, reach) >= reach)
      return;
    if (!tree_->nodeHasChildren(&node))
    {
      // Asked of leaves only: what inner nodes say may be old in a map that is updated lazily.
      if (tree_->isNodeOccupied(node))
        visit(cell, center);
      return;
    }
    // The child that holds the point first: it makes the others' limit.
    const unsigned int first = (point.x() > center.x() ? 1 : 0) + (point.y() > center.y() ? 2 : 0) +
                               (point.z() > center.z() ? 4 : 0);
    for (unsigned int i = 0; i < 8; ++i)
    {
      const unsigned int child = first ^ i;
      if (!tree_->nodeChildExists(&node, child))
        continue;
      const Eigen::Vector3d offset((child & 1) ? 0.5 : -0.5, (child & 2) ? 0.5 : -0.5, (child & 4) ? 0.5 : -0.5);
      search(*tree_->getNodeChild(&node, child), center + half * offset, 0.5 * half, point, reach, visit);
    }
  }

  std::shared_ptr<const octomap::OcTree> tree_;
};

SolidConstPtr meshOf(const shapes::Mesh& mesh)
{
  TriangleMesh::Vertices vertices(mesh.vertex_count);
  for (std::size_t i = 0; i < vertices.size(); ++i)
    vertices[i] = Eigen::Map<const Eigen::Vector3d>(mesh.vertices + 3 * i);
  TriangleMesh::Triangles triangles(mesh.triangle_count);
  for (std::size_t i = 0; i < triangles.size(); ++i)
    triangles[i] = { mesh.triangles[3 * i], mesh.triangles[3 * i + 1], mesh.triangles[3 * i + 2] };
  return std::make_shared<TriangleMesh>(vertices, triangles);
}

SolidConstPtr cachedMeshOf(const shapes::ShapeConstPtr& shape)
{
  using Key = std::weak_ptr<const shapes::Shape>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const Solid>, std::owner_less<Key>> known;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (auto item = known.begin(); item != known.end();)
      item = item->first.expired() || item->second.expired() ? known.erase(item) : std::next(item);
    const auto found = known.find(shape);
    if (found != known.end())
      if (SolidConstPtr solid = found->second.lock())
        return solid;
  }
  SolidConstPtr solid = meshOf(static_cast<const shapes::Mesh&>(*shape));
  const std::lock_guard<std::mutex> lock(mutex);
  known[shape] = solid;
  return solid;
}
}  // namespace

SolidConstPtr solidOf(const shapes::ShapeConstPtr& shape)
{
  switch (shape->type)
  {
    case shapes::SPHERE:
      return std::make_shared<Ball>(static_cast<const shapes::Sphere&>(*shape).radius);
    case shapes::BOX:
      return std::make_shared<Cuboid>(Eigen::Map<const Eigen::Vector3d>(static_cast<const shapes::Box&>(*shape).size));
    case shapes::CYLINDER:
    {
      const auto& cylinder = static_cast<const shapes::Cylinder&>(*shape);
      return std::make_shared<Revolved>(Revolved::cylinder(cylinder.radius, cylinder.length));
    }
    case shapes::CONE:
    {
      const auto& cone = static_cast<const shapes::Cone&>(*shape);
      return std::make_shared<Revolved>(Revolved::cone(cone.radius, cone.length));
    }
    case shapes::PLANE:
    {
      const auto& plane = static_cast<const shapes::Plane&>(*shape);
      // n·p + d = 0 by definition; MoveIt's FCL has it at n·p = d.
      if (plane.d != 0.0)
        throw std::invalid_argument("a plane with an offset (place it by its pose instead)");
      return std::make_shared<Plane>(Eigen::Vector3d(plane.a, plane.b, plane.c), 0.0);
    }
    case shapes::MESH:
      return cachedMeshOf(shape);
    case shapes::OCTREE:
      return std::make_shared<OccupiedCells>(static_cast<const shapes::OcTree&>(*shape).octree);
    default:
      throw std::invalid_argument("a shape is of a kind that is not known");
  }
}

WorldShapes::WorldShapes(const collision_detection::World& world)
{
  BoxTree::Boxes boxes;
  for (const auto& item : world)
  {
    const collision_detection::World::Object& object = *item.second;
    for (std::size_t i = 0; i < object.shapes_.size(); ++i)
    {
      try
      {
        WorldShape shape(solidOf(object.shapes_[i]), object.global_shape_poses_[i]);
        shape.object = object.id_;
        shape.index = i;
        shape.count = object.shapes_.size();
        boxes.push_back(shape.box);
        shapes_.push_back(std::move(shape));
      }
      catch (const std::invalid_argument& error)
      {
        missing_ = "object '" + object.id_ + "': " + error.what();
      }
    }
  }
  tree_ = BoxTree(boxes);
}
}  // namespace morphit_moveit
