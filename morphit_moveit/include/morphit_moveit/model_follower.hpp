// Models of robots that arrive by a latched topic, and what is made of them for each robot of the process.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <moveit/robot_model/robot_model.hpp>
#include <rclcpp/rclcpp.hpp>

#include <morphit_moveit/own_node.hpp>

namespace morphit_moveit
{
/** What is known of one robot as it is now: a query takes it once and keeps it. */
template <class Robot>
class Slot
{
public:
  std::shared_ptr<const Robot> get() const
  {
    return std::atomic_load(&robot_);
  }
  void set(std::shared_ptr<const Robot> robot)
  {
    std::atomic_store(&robot_, std::move(robot));
  }

private:
  std::shared_ptr<const Robot> robot_;
};

/** Follows a topic by a node and a thread of its own, made when the first robot is asked for.
 *
 * Messages and what is made of them have a `content_hash`: equal hash, equal content.
 */
template <class Message, class Robot>
class ModelFollower
{
public:
  /** What holds what is known of a robot, from now on and at each later model. */
  std::shared_ptr<const Slot<Robot>> slot(const moveit::core::RobotModelConstPtr& robot)
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    connect();
    known_.erase(std::remove_if(known_.begin(), known_.end(), [](const Known& known) { return known.robot.expired(); }),
                 known_.end());
    for (const Known& known : known_)
      if (known.robot.lock() == robot)
        return known.slot;
    Known known{ robot, std::make_shared<Slot<Robot>>() };
    known.slot->set(make(*robot, model_.get()));
    known_.push_back(known);
    return known.slot;
  }

protected:
  /** @param node its name
   *  @param topic default of its parameter `topic` */
  ModelFollower(std::string node, std::string topic) : name_(std::move(node)), topic_(std::move(topic))
  {
  }
  virtual ~ModelFollower() = default;

  /** Declare parameters besides `topic`. */
  virtual void declare(rclcpp::Node& node) = 0;

  /** @param model the latest one, or nullptr */
  virtual std::shared_ptr<const Robot> make(const moveit::core::RobotModel& robot, const Message* model) const = 0;

private:
  struct Known
  {
    std::weak_ptr<const moveit::core::RobotModel> robot;
    std::shared_ptr<Slot<Robot>> slot;
  };

  void connect()
  {
    if (node_ || !rclcpp::ok())
      return;
    try
    {
      node_ = makeOwnNode(name_);
      const auto topic = node_->declare_parameter<std::string>("topic", topic_);
      declare(*node_);
      subscription_ = node_->create_subscription<Message>(
          topic, rclcpp::QoS(1).reliable().transient_local(),
          [this](const typename Message::ConstSharedPtr& model) { take(model); });
      executor_ = std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
      executor_->add_node(node_);
      std::thread([executor = executor_] { executor->spin(); }).detach();
    }
    catch (const std::exception& error)
    {
      RCLCPP_ERROR(rclcpp::get_logger("morphit_moveit"), "%s: no later models: %s", name_.c_str(), error.what());
    }
  }

  void take(const typename Message::ConstSharedPtr& model)
  {
    std::vector<std::pair<moveit::core::RobotModelConstPtr, std::shared_ptr<Slot<Robot>>>> robots;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      model_ = model;
      for (const Known& known : known_)
        if (const auto robot = known.robot.lock())
          robots.emplace_back(robot, known.slot);
    }
    // Without the lock: a cover takes a while to prove, and nobody has to wait for it.
    for (const auto& [robot, slot] : robots)
      if (slot->get()->content_hash != model->content_hash || model->content_hash.empty())
        slot->set(make(*robot, model.get()));
  }

  const std::string name_, topic_;
  std::mutex mutex_;
  std::vector<Known> known_;
  typename Message::ConstSharedPtr model_;
  rclcpp::Node::SharedPtr node_;
  rclcpp::Executor::SharedPtr executor_;
  rclcpp::SubscriptionBase::SharedPtr subscription_;
};

/** A parameter that is a length, from 0 to 1 m. */
inline double declareLength(rclcpp::Node& node, const std::string& name, double value)
{
  rcl_interfaces::msg::ParameterDescriptor length;
  length.floating_point_range.resize(1);
  length.floating_point_range[0].to_value = 1.0;
  return node.declare_parameter<double>(name, value, length);
}
}  // namespace morphit_moveit
