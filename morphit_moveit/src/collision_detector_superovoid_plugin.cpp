// What MoveIt loads for `collision_detector: Superovoid`.
#include <moveit/collision_detection/collision_plugin.hpp>
#include <morphit_moveit/collision_env_superovoid.hpp>
#include <pluginlib/class_list_macros.hpp>

namespace morphit_moveit
{
class CollisionDetectorSuperovoidPlugin : public collision_detection::CollisionPlugin
{
public:
  bool initialize(const planning_scene::PlanningScenePtr& scene) const override
  {
    scene->allocateCollisionDetector(CollisionDetectorAllocatorSuperovoid::create());
    return true;
  }
};
}  // namespace morphit_moveit

PLUGINLIB_EXPORT_CLASS(morphit_moveit::CollisionDetectorSuperovoidPlugin, collision_detection::CollisionPlugin)
