// MoveIt's shapes as solids, and the objects of a world as a tree of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <geometric_shapes/shapes.h>
#include <moveit/collision_detection/world.hpp>

#include <morphit_moveit/box_tree.hpp>
#include <morphit_moveit/placed_spheres.hpp>

namespace morphit_moveit
{
/** The solid of a shape; of a mesh, the one made before of the same shape, if it is still in use.
 *
 * @throw std::invalid_argument for an unknown shape or a mesh that cannot be used.
 */
SolidConstPtr solidOf(const shapes::ShapeConstPtr& shape);

/** A shape of an object. */
struct WorldShape : PlacedSolid
{
  using PlacedSolid::PlacedSolid;

  std::string object;          // id
  std::size_t index;           // of the shape in the object
  std::size_t count;           // shapes of the object
};

/** What a world held at some time. Immutable. */
class WorldShapes
{
public:
  explicit WorldShapes(const collision_detection::World& world);

  const std::vector<WorldShape, Eigen::aligned_allocator<WorldShape>>& shapes() const
  {
    return shapes_;
  }
  const BoxTree& tree() const
  {
    return tree_;
  }
  /** Why not all of the world is in here; empty if it is. */
  const std::string& missing() const
  {
    return missing_;
  }

private:
  std::vector<WorldShape, Eigen::aligned_allocator<WorldShape>> shapes_;
  BoxTree tree_;
  std::string missing_;
};
}  // namespace morphit_moveit
