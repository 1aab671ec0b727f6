#include <morphit_moveit/collision_env_superovoid.hpp>

#include <memory>

#include <morphit_moveit/distance_client.hpp>
#include <morphit_moveit/distance_messages.hpp>

namespace morphit_moveit
{
const std::string CollisionDetectorAllocatorSuperovoid::NAME("Superovoid");

namespace
{
/** Whether the service has answered; where not, the reason is in the log. */
bool askService(const collision_detection::DistanceRequest& req, collision_detection::DistanceResult& res,
                const moveit::core::RobotState& state, const collision_detection::World& world, Scope scope)
{
  std::string reason;
  const auto request = std::make_shared<RobotDistance::Request>();
  if (fillRequest(req, state, world, scope, *request, reason))
  {
    // No pairs would mean all pairs to the service.
    if (request->pair_links_1.empty())
      return true;
    const auto response = DistanceClient::instance().ask(request, reason);
    if (response && !response->states.empty())
    {
      addToResult(*response, req, state, res);
      return true;
    }
  }
  DistanceClient::instance().warn(reason);
  return false;
}
}  // namespace

CollisionEnvSuperovoid::CollisionEnvSuperovoid(const CollisionEnvSuperovoid& other,
                                               const collision_detection::WorldPtr& world)
  : collision_detection::CollisionEnvFCL(other, world)
{
}

void CollisionEnvSuperovoid::distanceSelf(const collision_detection::DistanceRequest& req,
                                          collision_detection::DistanceResult& res,
                                          const moveit::core::RobotState& state) const
{
  if (!askService(req, res, state, *getWorld(), Scope::SELF))
    CollisionEnvFCL::distanceSelf(req, res, state);
}

void CollisionEnvSuperovoid::distanceRobot(const collision_detection::DistanceRequest& req,
                                           collision_detection::DistanceResult& res,
                                           const moveit::core::RobotState& state) const
{
  if (!askService(req, res, state, *getWorld(), Scope::WORLD))
    CollisionEnvFCL::distanceRobot(req, res, state);
}
}  // namespace morphit_moveit
