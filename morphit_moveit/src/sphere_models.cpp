#include <morphit_moveit/sphere_models.hpp>

#include <algorithm>
#include <stdexcept>

#include <geometric_shapes/shapes.h>
#include <morphit_moveit/world_shapes.hpp>

namespace morphit_moveit
{
namespace
{
using morphit_interfaces::msg::LinkSpheres;
using morphit_interfaces::msg::SphereModel;

// Of a link without a fitted model. More cost more than they save: FCL has the last word anyway.
constexpr std::size_t PLAIN_SPHERES = 16;

bool isSpheres(const moveit::core::LinkModel& link)
{
  return std::all_of(link.getShapes().begin(), link.getShapes().end(),
                     [](const shapes::ShapeConstPtr& shape) { return shape->type == shapes::SPHERE; });
}

/** @throw std::invalid_argument for a shape that spheres cannot contain. */
std::vector<CoveredShape> coveredShapes(const moveit::core::LinkModel& link)
{
  std::vector<CoveredShape> result;
  for (std::size_t i = 0; i < link.getShapes().size(); ++i)
  {
    const shapes::ShapeConstPtr& shape = link.getShapes()[i];
    if (shape->type == shapes::PLANE || shape->type == shapes::OCTREE)
      throw std::invalid_argument("spheres do not contain a plane or an octomap");
    result.push_back({ solidOf(shape), link.getCollisionOriginTransforms()[i] });
  }
  return result;
}

Spheres ownSpheres(const moveit::core::LinkModel& link)
{
  Spheres spheres;
  for (std::size_t i = 0; i < link.getShapes().size(); ++i)
    spheres.push_back({ link.getCollisionOriginTransforms()[i].translation(),
                        static_cast<const shapes::Sphere&>(*link.getShapes()[i]).radius });
  for (SolidSphere& sphere : spheres)
    sphere.inner = sphere.radius;
  return spheres;
}

/** The spheres of a link in a message, grown to contain it; none, and a remark, if that takes too much. */
Spheres fittedSpheres(const SphereModel& model, const std::string& link, const std::vector<CoveredShape>& shapes,
                      double max_growth, std::vector<std::string>& remarks)
{
  const auto part = std::find_if(model.links.begin(), model.links.end(), [&link](const LinkSpheres& part) {
    return part.link_name == link && part.object_id.empty();
  });
  if (part == model.links.end() || part->spheres.empty())
  {
    remarks.push_back(link + " has no spheres");
    return {};
  }
  Spheres spheres;
  for (const auto& sphere : part->spheres)
  {
    spheres.push_back({ { sphere.center.x, sphere.center.y, sphere.center.z }, sphere.radius });
    if (!spheres.back().center.allFinite() || !(sphere.radius > 0.0 && sphere.radius < 1.0e3))
    {
      remarks.push_back(link + " has a sphere of radius " + std::to_string(sphere.radius));
      return {};
    }
  }
  double growth = 0.0;
  for (const CoveredShape& shape : shapes)
    growth = std::max(growth, neededGrowth(spheres, shape));
  if (growth > max_growth)
  {
    remarks.push_back(link + " sticks out of its spheres by " + millimetres(growth) + ", max_growth is " +
                      millimetres(max_growth));
    return {};
  }
  for (SolidSphere& sphere : spheres)
    sphere.radius += growth;
  return spheres;
}

/** @throw std::invalid_argument for a shape that spheres cannot contain. */
SphereLink makeSphereLink(const moveit::core::LinkModel& link, const SphereModel* model, double max_growth,
                          std::vector<std::string>& remarks)
{
  if (isSpheres(link))
    return { &link, SphereLink::Source::OWN, BodySpheres(ownSpheres(link)) };
  const std::vector<CoveredShape> shapes = coveredShapes(link);
  SphereLink part{ &link, SphereLink::Source::FITTED, {} };
  Spheres spheres;
  if (model)
    spheres = fittedSpheres(*model, link.getName(), shapes, max_growth, remarks);
  if (spheres.empty())
  {
    part.source = SphereLink::Source::PLAIN;
    for (const CoveredShape& shape : shapes)
      for (const SolidSphere& sphere : plainCover(shape, std::max<std::size_t>(1, PLAIN_SPHERES / shapes.size())))
        spheres.push_back(sphere);
  }
  for (const CoveredShape& shape : shapes)
    measureInner(spheres, shape);
  part.body = BodySpheres(std::move(spheres));
  return part;
}
}  // namespace

std::string millimetres(double length)
{
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f mm", 1000.0 * length);
  return text;
}

std::shared_ptr<const SphereRobot> makeSphereRobot(const moveit::core::RobotModel& robot, const SphereModel* model,
                                                   double max_growth, std::vector<std::string>& remarks)
{
  auto result = std::make_shared<SphereRobot>();
  if (model)
    result->content_hash = model->content_hash;
  for (const moveit::core::LinkModel* link : robot.getLinkModelsWithCollisionGeometry())
  {
    try
    {
      result->links.push_back(makeSphereLink(*link, model, max_growth, remarks));
    }
    catch (const std::invalid_argument& error)
    {
      result->missing = "link '" + link->getName() + "': " + error.what();
    }
  }
  return result;
}

rclcpp::Logger SphereModels::logger()
{
  return rclcpp::get_logger("morphit_moveit.spheres");
}

SphereModels& SphereModels::instance()
{
  // Never destroyed: at the end of the process the middleware may be gone before static objects are.
  static SphereModels* const models = new SphereModels();
  return *models;
}

void SphereModels::declare(rclcpp::Node& node)
{
  max_growth_ = declareLength(node, "max_growth", max_growth_);
  confirm_self_ = node.declare_parameter<bool>("confirm_self", confirm_self_);
}

std::shared_ptr<const SphereRobot> SphereModels::make(const moveit::core::RobotModel& robot,
                                                      const SphereModel* model) const
{
  std::vector<std::string> remarks;
  auto spheres = makeSphereRobot(robot, model, max_growth_, remarks);
  for (const std::string& remark : remarks)
    RCLCPP_WARN(logger(), "Spheres of %s: %s; FCL decides for it", robot.getName().c_str(), remark.c_str());
  std::size_t count = 0, plain = 0;
  for (const SphereLink& link : spheres->links)
  {
    count += link.body.spheres.size();
    plain += link.source == SphereLink::Source::PLAIN ? 1 : 0;
  }
  if (!spheres->missing.empty())
    RCLCPP_WARN(logger(), "FCL answers alone for %s: %s", robot.getName().c_str(), spheres->missing.c_str());
  RCLCPP_INFO(logger(), "%s: %zu spheres, %zu of %zu links without a model", robot.getName().c_str(), count, plain,
              spheres->links.size());
  return spheres;
}
}  // namespace morphit_moveit
