// A tree of axis-aligned boxes, for what lies near a point.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include <Eigen/Geometry>

namespace morphit_moveit
{
/** Made once from boxes, then asked from any thread. A box is known by its place in the list that the tree was made of. */
class BoxTree
{
public:
  using Boxes = std::vector<Eigen::AlignedBox3d, Eigen::aligned_allocator<Eigen::AlignedBox3d>>;

  BoxTree() = default;

  explicit BoxTree(const Boxes& boxes) : order_(boxes.size())
  {
    std::iota(order_.begin(), order_.end(), 0u);
    if (boxes.empty())
      return;
    nodes_.reserve(2 * boxes.size());
    split(boxes, 0, static_cast<std::uint32_t>(boxes.size()));
  }

  /** Call visit(index) for each box at most `distance` from the point, until it returns true; whether it did. */
  template <class Visit>
  bool within(const Eigen::Vector3d& point, double distance, Visit&& visit) const
  {
    const double limit = distance * distance;
    std::array<std::uint32_t, DEPTH> waiting;
    std::size_t count = 0;
    if (!nodes_.empty())
      waiting[count++] = 0;
    while (count > 0)
    {
      const std::uint32_t at = waiting[--count];
      const Node& node = nodes_[at];
      if (node.box.squaredExteriorDistance(point) > limit)
        continue;
      if (node.count == 0)
      {
        waiting[count++] = node.right;
        waiting[count++] = at + 1;
        continue;
      }
      for (std::uint32_t i = node.right; i < node.right + node.count; ++i)
        if (visit(order_[i]))
          return true;
    }
    return false;
  }

  /** Call measure(index, best) for boxes that are nearer than the root of `best`, the nearer branch first; measure lowers
   * `best`, a squared distance, where it finds something nearer. */
  template <class Measure>
  void nearest(const Eigen::Vector3d& point, double& best, Measure&& measure) const
  {
    struct Waiting
    {
      std::uint32_t at;
      double squared;
    };
    std::array<Waiting, DEPTH> waiting;
    std::size_t count = 0;
    if (!nodes_.empty())
      waiting[count++] = { 0, nodes_[0].box.squaredExteriorDistance(point) };
    while (count > 0)
    {
      const Waiting next = waiting[--count];
      if (next.squared >= best)
        continue;
      const Node& node = nodes_[next.at];
      if (node.count > 0)
      {
        for (std::uint32_t i = node.right; i < node.right + node.count; ++i)
          measure(order_[i], best);
        continue;
      }
      Waiting near{ next.at + 1, nodes_[next.at + 1].box.squaredExteriorDistance(point) };
      Waiting far{ node.right, nodes_[node.right].box.squaredExteriorDistance(point) };
      if (far.squared < near.squared)
        std::swap(near, far);
      waiting[count++] = far;
      waiting[count++] = near;
    }
  }

private:
  // Halves at each level: 64 levels are more boxes than there is memory for.
  static constexpr std::size_t DEPTH = 128;
  static constexpr std::uint32_t LEAF = 2;

  struct Node
  {
    Eigen::AlignedBox3d box;
    std::uint32_t right = 0;  // the second child (the first one follows the node); of a leaf, its first box
    std::uint32_t count = 0;  // boxes of a leaf; 0 of an inner node
  };

  void split(const Boxes& boxes, std::uint32_t begin, std::uint32_t end)
  {
    const std::size_t at = nodes_.size();
    nodes_.emplace_back();
    Eigen::AlignedBox3d box, centers;
    for (std::uint32_t i = begin; i < end; ++i)
    {
      box.extend(boxes[order_[i]]);
      centers.extend(boxes[order_[i]].center());
    }
    nodes_[at].box = box;
    if (end - begin <= LEAF)
    {
      nodes_[at].right = begin;
      nodes_[at].count = end - begin;
      return;
    }
    Eigen::Index axis;
    centers.sizes().maxCoeff(&axis);
    const std::uint32_t middle = begin + (end - begin) / 2;
    std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                     [&](std::uint32_t a, std::uint32_t b) { return boxes[a].center()[axis] < boxes[b].center()[axis]; });
    split(boxes, begin, middle);
    nodes_[at].right = static_cast<std::uint32_t>(nodes_.size());
    split(boxes, middle, end);
  }

  std::vector<std::uint32_t> order_;
  std::vector<Node, Eigen::aligned_allocator<Node>> nodes_;
};
}  // namespace morphit_moveit
