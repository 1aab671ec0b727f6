// One request about distances: pairs are gone through by lower bounds of their distances.
#pragma once

#include <functional>
#include <vector>

#include <morphit_moveit/placed_robot.hpp>

namespace morphit_moveit
{
class DistanceQuery
{
public:
  DistanceQuery(const FclObjects& objects, const moveit::core::RobotState& state,
                const collision_detection::DistanceRequest& req, collision_detection::DistanceResult& res)
    : objects_(objects), state_(state), req_(req), res_(res), data_(&req, &res)
  {
  }

  /** Have a pair measured, unless nothing that is at least `bound` [m] away is of interest by then. */
  void add(double bound, std::function<void()> measure)
  {
    pairs_.push_back({ bound, std::move(measure) });
  }

  void run();

  void measure(const PlacedLink& link, const WorldShape& shape);

  /** Between two links; with `confirm`, FCL's where their spheres overlap. */
  void measure(const PlacedLink& a, const PlacedLink& b, bool confirm);

  /** Take the meeting of two bodies, the first of them a link, that `find` finds nearer than its argument [m], if any. */
  void measure(const BodyName& a, const BodyName& b, collision_detection::BodyType type_b,
               const std::function<bool(double, Meeting&)>& find);

  void measureByFcl(fcl::CollisionObjectd& a, fcl::CollisionObjectd& b);
  void measureByFcl(const moveit::core::LinkModel& link, fcl::CollisionObjectd& other);
  void measureByFcl(const moveit::core::LinkModel& a, const moveit::core::LinkModel& b);
  void measureByFcl(const moveit::core::LinkModel& link, const WorldShape& shape);
  void measureByFcl(CarriedShape& carried, const WorldShape& shape);

private:
  struct Pair
  {
    double bound;
    std::function<void()> measure;
  };

  double limit() const;
  void store(const BodyName& a, const BodyName& b, collision_detection::BodyType type_b, const Meeting& meeting);

  const FclObjects& objects_;
  const moveit::core::RobotState& state_;
  const collision_detection::DistanceRequest& req_;
  collision_detection::DistanceResult& res_;
  collision_detection::DistanceData data_;
  std::vector<Pair> pairs_;
};
}  // namespace morphit_moveit
