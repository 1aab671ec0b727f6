// Collisions and distances by the spheres of the robot's links.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <moveit/collision_detection/collision_detector_allocator.hpp>
#include <moveit/collision_detection_fcl/collision_env_fcl.hpp>

#include <morphit_moveit/placed_robot.hpp>

namespace morphit_moveit
{
/** Collisions by spheres that contain the links.
 *
 * What the spheres call free is free: they are proven to contain the collision geometry. What they touch collides, if the
 * spheres are the link's own or a fitted model's; otherwise, between two links (unless `confirm_self` is false), and for
 * attached bodies FCL has the last word, about that pair alone. Distances are never greater than those of the geometry.
 *
 * FCL answers alone where costs are asked for, and where the world or a link has a shape that spheres cannot be held against.
 *
 * Any number of threads may ask at once.
 */
class CollisionEnvSpheres : public collision_detection::CollisionEnvFCL, protected FclObjects
{
public:
  CollisionEnvSpheres(const moveit::core::RobotModelConstPtr& model, double padding = 0.0, double scale = 1.0);
  CollisionEnvSpheres(const moveit::core::RobotModelConstPtr& model, const collision_detection::WorldPtr& world,
                      double padding = 0.0, double scale = 1.0);
  CollisionEnvSpheres(const CollisionEnvSpheres& other, const collision_detection::WorldPtr& world);
  ~CollisionEnvSpheres() override;

  // CollisionEnv and CollisionEnvFCL have more overloads of these names.
  using collision_detection::CollisionEnv::distanceRobot;
  using collision_detection::CollisionEnv::distanceSelf;
  using collision_detection::CollisionEnvFCL::checkRobotCollision;
  using collision_detection::CollisionEnvFCL::checkSelfCollision;

  void checkSelfCollision(const collision_detection::CollisionRequest& req, collision_detection::CollisionResult& res,
                          const moveit::core::RobotState& state) const override;
  void checkSelfCollision(const collision_detection::CollisionRequest& req, collision_detection::CollisionResult& res,
                          const moveit::core::RobotState& state,
                          const collision_detection::AllowedCollisionMatrix& acm) const override;
  void checkRobotCollision(const collision_detection::CollisionRequest& req, collision_detection::CollisionResult& res,
                           const moveit::core::RobotState& state) const override;
  void checkRobotCollision(const collision_detection::CollisionRequest& req, collision_detection::CollisionResult& res,
                           const moveit::core::RobotState& state,
                           const collision_detection::AllowedCollisionMatrix& acm) const override;
  void distanceSelf(const collision_detection::DistanceRequest& req, collision_detection::DistanceResult& res,
                    const moveit::core::RobotState& state) const override;
  void distanceRobot(const collision_detection::DistanceRequest& req, collision_detection::DistanceResult& res,
                     const moveit::core::RobotState& state) const override;
  void setWorld(const collision_detection::WorldPtr& world) override;

protected:
  /** Whether fitted spheres find collisions, or only rule them out. */
  virtual bool fittedDecide() const
  {
    return true;
  }

  void updatedPaddingOrScaling(const std::vector<std::string>& links) override;

  std::shared_ptr<const WorldShapes> world() const;
  /** Whether nothing is missing; a warning, at most every five seconds, if something is. */
  bool canAnswer(const std::string& missing) const;
  /** Shapes of the bodies that the robot carries. */
  std::vector<CarriedShape> carriedBy(const moveit::core::RobotState& state) const;
  /** What padding and scale of a link mean for shapes around it. */
  LinkGrowth growthOf(const moveit::core::LinkModel& link) const;

private:
  void observe();
  void updateGrowth();
  bool decidesOnWorld(const SphereLink& link) const;
  bool decidesOnPair(const SphereLink& a, const SphereLink& b) const;
  void checkSelf(const collision_detection::CollisionRequest& req, collision_detection::CollisionResult& res,
                 const moveit::core::RobotState& state, const collision_detection::AllowedCollisionMatrix* acm) const;
  void checkRobot(const collision_detection::CollisionRequest& req, collision_detection::CollisionResult& res,
                  const moveit::core::RobotState& state, const collision_detection::AllowedCollisionMatrix* acm) const;

  template <class Measure>
  void addDistance(const collision_detection::CollisionRequest& req, collision_detection::CollisionResult& res,
                   const collision_detection::AllowedCollisionMatrix* acm, Measure&& measure) const;
  void visitLink(const moveit::core::LinkModel& link, const moveit::core::RobotState& state,
                 const Visit& visit) const override;
  void visitShape(const WorldShape& shape, const Visit& visit) const override;

  std::shared_ptr<const SphereSlot> slot_;
  std::vector<LinkGrowth> growth_;  // of each link of the robot of spheres
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const WorldShapes> world_shapes_;  // made at the first query after a change
  collision_detection::World::ObserverHandle observer_;
};

/** The same, with FCL's last word on everything that fitted spheres touch: FCL's verdicts, sooner. */
class CollisionEnvSpheresFCL : public CollisionEnvSpheres
{
public:
  using CollisionEnvSpheres::CollisionEnvSpheres;
  CollisionEnvSpheresFCL(const CollisionEnvSpheresFCL& other, const collision_detection::WorldPtr& world)
    : CollisionEnvSpheres(other, world)
  {
  }

protected:
  bool fittedDecide() const override
  {
    return false;
  }
};

/** Makes environments of these kinds for planning scenes: "Spheres" and "SpheresFCL". */
class CollisionDetectorAllocatorSpheres
  : public collision_detection::CollisionDetectorAllocatorTemplate<CollisionEnvSpheres, CollisionDetectorAllocatorSpheres>
{
public:
  static const std::string NAME;
};

class CollisionDetectorAllocatorSpheresFCL
  : public collision_detection::CollisionDetectorAllocatorTemplate<CollisionEnvSpheresFCL,
                                                                   CollisionDetectorAllocatorSpheresFCL>
{
public:
  static const std::string NAME;
};
}  // namespace morphit_moveit
