// The spheres of a robot's links: from its description, and from the topic `sphere_model` where they are later and better.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <moveit/robot_model/robot_model.hpp>
#include <morphit_interfaces/msg/sphere_model.hpp>

#include <morphit_moveit/model_follower.hpp>
#include <morphit_moveit/sphere_cover.hpp>

namespace morphit_moveit
{
/** A link of the description as spheres, in its own frame. They contain the collision geometry of the link. */
struct SphereLink
{
  /** Where the spheres are from. */
  enum class Source
  {
    OWN,     // the link's collision geometry is these spheres
    FITTED,  // a model of the topic, grown by what was missing
    PLAIN    // made here, and coarse: good to rule collisions out, not to find them
  };

  const moveit::core::LinkModel* link;
  Source source;
  BodySpheres body;
};

/** All links with collision geometry, but those named in `missing`. */
struct SphereRobot
{
  std::vector<SphereLink> links;
  std::string content_hash;  // of the model of the topic; empty without one
  std::string missing;       // why there are no spheres for a link; empty if there are for all
};

using SphereSlot = Slot<SphereRobot>;

/** Spheres for each link of a robot, and in `remarks` why some of the model's were not taken.
 *
 * @param model of the topic, or nullptr.
 * @param max_growth of a link's radii [m]; a link whose spheres would have to grow by more gets none of them.
 */
std::shared_ptr<const SphereRobot> makeSphereRobot(const moveit::core::RobotModel& robot,
                                                   const morphit_interfaces::msg::SphereModel* model, double max_growth,
                                                   std::vector<std::string>& remarks);

/** One for the process, with a node and a thread of its own: `collision_spheres`.
 *
 * Its parameters: `topic`; `max_growth` [m], see above; `confirm_self`, whether FCL has the last word on pairs of links whose
 * spheres touch.
 */
class SphereModels : public ModelFollower<morphit_interfaces::msg::SphereModel, SphereRobot>
{
public:
  static SphereModels& instance();

  bool confirmSelf() const
  {
    return confirm_self_;
  }

  static rclcpp::Logger logger();

private:
  SphereModels() : ModelFollower("collision_spheres", "sphere_model")
  {
  }

  void declare(rclcpp::Node& node) override;
  std::shared_ptr<const SphereRobot> make(const moveit::core::RobotModel& robot,
                                          const morphit_interfaces::msg::SphereModel* model) const override;

  double max_growth_ = 0.02;
  bool confirm_self_ = true;
};

/** A length for a log. */
std::string millimetres(double length);
}  // namespace morphit_moveit
