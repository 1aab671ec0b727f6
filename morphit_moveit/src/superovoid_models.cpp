#include <morphit_moveit/superovoid_models.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <morphit_moveit/sphere_models.hpp>
#include <morphit_moveit/world_shapes.hpp>

namespace morphit_moveit
{
namespace
{
using morphit_interfaces::msg::DistanceShape;
using morphit_interfaces::msg::LinkSuperovoids;
using morphit_interfaces::msg::SuperovoidModel;

rclcpp::Logger logger()
{
  return rclcpp::get_logger("morphit_moveit.superovoids");
}

/** @throw std::invalid_argument for anything else than a superovoid at a pose. */
SuperovoidPiece pieceOf(const DistanceShape& message)
{
  const auto& sizes = message.dimensions;
  if (message.type != DistanceShape::SUPEROVOID || (sizes.size() != 3 && sizes.size() != 5 && sizes.size() != 7))
    throw std::invalid_argument("a shape is no superovoid of 3, 5 or 7 numbers");
  const auto number = [&sizes](std::size_t i, double otherwise) { return i < sizes.size() ? sizes[i] : otherwise; };
  auto shape = std::make_shared<Superovoid>(Eigen::Vector3d(sizes[0], sizes[1], sizes[2]),
                                            Eigen::Vector2d(number(3, 1.0), number(4, 1.0)),
                                            Eigen::Vector2d(number(5, 0.0), number(6, 0.0)));
  const auto& turn = message.pose.orientation;
  const auto& at = message.pose.position;
  const Eigen::Quaterniond rotation(turn.w, turn.x, turn.y, turn.z);
  const Eigen::Vector3d position(at.x, at.y, at.z);
  if (!position.allFinite() || !(std::abs(rotation.norm() - 1.0) < 1.0e-3))
    throw std::invalid_argument("a pose is not finite, or its quaternion not of unit length");
  return { std::move(shape), Eigen::Translation3d(position) * rotation.normalized() };
}

/** @throw std::invalid_argument as above, or if the link has a shape that superovoids cannot contain. */
SuperovoidLink linkOf(const moveit::core::LinkModel& link, const SuperovoidModel& model, double max_growth)
{
  SuperovoidLink result{ &link, {} };
  const auto part = std::find_if(model.links.begin(), model.links.end(), [&link](const LinkSuperovoids& other) {
    return other.link_name == link.getName();
  });
  if (part == model.links.end() || part->shapes.empty())
    throw std::invalid_argument("it has no superovoids");
  for (const DistanceShape& shape : part->shapes)
    result.pieces.push_back(pieceOf(shape));
  for (std::size_t i = 0; i < link.getShapes().size(); ++i)
  {
    const shapes::ShapeConstPtr& shape = link.getShapes()[i];
    if (shape->type == shapes::PLANE || shape->type == shapes::OCTREE)
      throw std::invalid_argument("superovoids do not contain a plane or an octomap");
    const CoveredShape covered{ solidOf(shape), link.getCollisionOriginTransforms()[i] };
    result.growth = std::max(result.growth, neededGrowth(result.pieces, covered));
  }
  if (result.growth > max_growth)
    throw std::invalid_argument("it sticks out of its superovoids by " + millimetres(result.growth) +
                                ", max_growth is " + millimetres(max_growth));
  return result;
}
}  // namespace

std::shared_ptr<const SuperovoidRobot> makeSuperovoidRobot(const moveit::core::RobotModel& robot,
                                                           const SuperovoidModel& model, double max_growth,
                                                           std::vector<std::string>& remarks)
{
  auto result = std::make_shared<SuperovoidRobot>();
  result->content_hash = model.content_hash;
  for (const moveit::core::LinkModel* link : robot.getLinkModelsWithCollisionGeometry())
  {
    try
    {
      result->links.push_back(linkOf(*link, model, max_growth));
    }
    catch (const std::invalid_argument& error)
    {
      remarks.push_back("'" + link->getName() + "': " + error.what());
      result->links.push_back({ link, {} });
    }
  }
  return result;
}

SuperovoidModels& SuperovoidModels::instance()
{
  // Never destroyed: at the end of the process the middleware may be gone before static objects are.
  static SuperovoidModels* const models = new SuperovoidModels();
  return *models;
}

void SuperovoidModels::declare(rclcpp::Node& node)
{
  max_growth_ = declareLength(node, "max_growth", max_growth_);
  grow_ = node.declare_parameter<bool>("grow", grow_);
}

std::shared_ptr<const SuperovoidRobot> SuperovoidModels::make(const moveit::core::RobotModel& robot,
                                                              const SuperovoidModel* model) const
{
  std::vector<std::string> remarks;
  if (!model)
  {
    RCLCPP_INFO(logger(), "%s: no superovoids yet; distances are FCL's", robot.getName().c_str());
    return makeSuperovoidRobot(robot, SuperovoidModel(), max_growth_, remarks);
  }
  auto made = std::make_shared<SuperovoidRobot>(*makeSuperovoidRobot(robot, *model, max_growth_, remarks));
  for (const std::string& remark : remarks)
    RCLCPP_WARN(logger(), "Distances of %s are FCL's for the link %s", robot.getName().c_str(), remark.c_str());
  double greatest = 0.0;
  std::size_t count = 0;
  for (SuperovoidLink& link : made->links)
  {
    greatest = std::max(greatest, link.growth);
    count += link.pieces.size();
    if (!grow_)
      link.growth = 0.0;
  }
  RCLCPP_INFO(logger(), "%s: %zu superovoids; links stick out by up to %s%s", robot.getName().c_str(), count,
              millimetres(greatest).c_str(), grow_ ? ", by which they grow" : "");
  return made;
}
}  // namespace morphit_moveit
