// The superovoids of a robot's links, from the topic `superovoid_model`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <moveit/robot_model/robot_model.hpp>
#include <morphit_interfaces/msg/superovoid_model.hpp>

#include <morphit_moveit/model_follower.hpp>
#include <morphit_moveit/placed_superovoids.hpp>

namespace morphit_moveit
{
/** A link with collision geometry; its superovoids, if it has any, contain that by their growth. */
struct SuperovoidLink
{
  const moveit::core::LinkModel* link;
  SuperovoidPieces pieces;
  double growth = 0.0;  // [m]
};

struct SuperovoidRobot
{
  std::vector<SuperovoidLink> links;  // every link with collision geometry
  std::string content_hash;           // of the model of the topic; empty without one
};

/** Superovoids for each link, and in `remarks` why a link has none.
 *
 * @param max_growth of a link's superovoids [m]; a link whose superovoids would have to grow by more gets none.
 */
std::shared_ptr<const SuperovoidRobot> makeSuperovoidRobot(const moveit::core::RobotModel& robot,
                                                           const morphit_interfaces::msg::SuperovoidModel& model,
                                                           double max_growth, std::vector<std::string>& remarks);

/** One for the process, with a node and a thread of its own: `collision_superovoids`.
 *
 * Its parameters: `topic`; `max_growth` [m], see above; `grow`, whether superovoids grow at all: without, distances are
 * those of the shapes as they were fitted, which may be greater than those of the links.
 */
class SuperovoidModels : public ModelFollower<morphit_interfaces::msg::SuperovoidModel, SuperovoidRobot>
{
public:
  static SuperovoidModels& instance();

private:
  SuperovoidModels() : ModelFollower("collision_superovoids", "superovoid_model")
  {
  }

  void declare(rclcpp::Node& node) override;
  std::shared_ptr<const SuperovoidRobot> make(const moveit::core::RobotModel& robot,
                                              const morphit_interfaces::msg::SuperovoidModel* model) const override;

  double max_growth_ = 0.05;
  bool grow_ = true;
};
}  // namespace morphit_moveit
