// One request about collisions: pairs are settled by spheres where they can be, and by FCL where they cannot.
#pragma once

#include <functional>
#include <vector>

#include <morphit_moveit/placed_robot.hpp>

namespace morphit_moveit
{
class CollisionQuery
{
public:
  /** The deepest meetings of a pair, at most as many as it is given. */
  using Meetings = std::function<std::vector<Meeting>(std::size_t)>;

  CollisionQuery(const moveit::core::RobotModelConstPtr& robot, const FclObjects& objects,
                 const moveit::core::RobotState& state, const collision_detection::CollisionRequest& req,
                 collision_detection::CollisionResult& res, const collision_detection::AllowedCollisionMatrix* acm);

  /** The links that the request is about; all, if nullptr. */
  const ActiveLinks* active() const
  {
    return data_.active_components_only_;
  }
  bool done() const
  {
    return data_.done_;
  }

  /** Take a pair whose spheres touch as colliding, unless the matrix says otherwise. */
  void collide(const BodyName& a, collision_detection::BodyType type_a, const BodyName& b,
               collision_detection::BodyType type_b, const Meetings& meetings);

  /** Settle a pair whose geometry is known to collide without FCL, where nothing more is asked of it; whether it could be. */
  bool settle(const BodyName& a, const BodyName& b);

  /** Ask FCL about a pair, with all its rules. */
  void confirm(fcl::CollisionObjectd& a, fcl::CollisionObjectd& b);
  void confirm(const PlacedLink& link, fcl::CollisionObjectd& other);
  void confirm(const PlacedLink& a, const PlacedLink& b);
  void confirm(const PlacedLink& link, const WorldShape& shape);

private:
  const FclObjects& objects_;
  const moveit::core::RobotState& state_;
  const collision_detection::CollisionRequest& req_;
  collision_detection::CollisionResult& res_;
  const collision_detection::AllowedCollisionMatrix* acm_;
  collision_detection::CollisionData data_;
};
}  // namespace morphit_moveit
