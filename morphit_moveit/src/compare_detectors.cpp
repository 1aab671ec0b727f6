// Speed and verdicts of MoveIt's collision detectors side by side, for a robot of one's own:
//   ros2 run morphit_moveit compare_detectors URDF SRDF [--group NAME] [--objects 100] [--states 1000] [--seconds 1]
//                                             [--seed 0] [--threads 1] [--wait 10] [--clearance 0.05] [--distances 500]
// Spheres and superovoids are those of the topics `sphere_model` and `superovoid_model` (start robot_spheres and
// superovoid_distance beside it), if they come within `--wait` seconds.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <geometric_shapes/shapes.h>
#include <moveit/collision_detection_bullet/collision_detector_allocator_bullet.hpp>
#include <moveit/collision_detection_fcl/collision_detector_allocator_fcl.hpp>
#include <moveit/planning_scene/planning_scene.hpp>
#include <morphit_moveit/collision_env_superovoid.hpp>
#include <rclcpp/rclcpp.hpp>
#include <srdfdom/model.h>
#include <urdf/model.h>

namespace
{
namespace cd = collision_detection;
using moveit::core::RobotState;
using States = std::vector<RobotState>;

struct Options
{
  std::vector<std::string> files;
  std::map<std::string, std::string> values{ { "group", "" },   { "objects", "100" }, { "states", "1000" },
                                             { "seconds", "1" }, { "seed", "0" },      { "threads", "1" },
                                             { "wait", "10" },  { "clearance", "0.05" },
                                             { "distances", "500" } };

  explicit Options(const std::vector<std::string>& arguments)
  {
    for (std::size_t i = 1; i < arguments.size(); ++i)
    {
      if (arguments[i].rfind("--", 0) != 0)
      {
        files.push_back(arguments[i]);
        continue;
      }
      const std::string name = arguments[i].substr(2);
      if (values.count(name) == 0 || i + 1 >= arguments.size())
        throw std::invalid_argument("unknown option or one without a value: " + arguments[i]);
      values[name] = arguments[++i];
    }
    if (files.size() != 2)
      throw std::invalid_argument("usage: compare_detectors URDF SRDF [--group NAME] [--objects N] [--states N] "
                                  "[--seconds S] [--seed N] [--threads N] [--wait S] [--clearance M] "
                                  "[--distances N]");
  }

  double number(const std::string& name, double least) const
  {
    std::size_t used = 0;
    double value = 0.0;
    try
    {
      value = std::stod(values.at(name), &used);
    }
    catch (const std::exception&)
    {
    }
    if (used != values.at(name).size() || !(value >= least))
      throw std::invalid_argument("--" + name + " " + values.at(name) + ": not a number of at least " +
                                  std::to_string(least));
    return value;
  }

  std::size_t count(const std::string& name, double least) const
  {
    return static_cast<std::size_t>(number(name, least));
  }
};

std::string textOf(const std::string& path)
{
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    throw std::invalid_argument("cannot read " + path);
  return text.str();
}

moveit::core::RobotModelPtr loadRobot(const Options& options)
{
  auto urdf = std::make_shared<urdf::Model>();
  auto srdf = std::make_shared<srdf::Model>();
  if (!urdf->initString(textOf(options.files[0])))
    throw std::invalid_argument(options.files[0] + " is no URDF");
  if (!srdf->initString(*urdf, textOf(options.files[1])))
    throw std::invalid_argument(options.files[1] + " is no SRDF of it");
  return std::make_shared<moveit::core::RobotModel>(urdf, srdf);
}

/** The mesh of the link with most triangles: what MoveIt's own comparison of detectors fills the world with. */
shapes::ShapeConstPtr someMesh(const moveit::core::RobotModel& robot)
{
  shapes::ShapeConstPtr best;
  std::size_t most = 0;
  for (const moveit::core::LinkModel* link : robot.getLinkModelsWithCollisionGeometry())
    for (const shapes::ShapeConstPtr& shape : link->getShapes())
      if (shape->type == shapes::MESH && static_cast<const shapes::Mesh&>(*shape).triangle_count > most)
      {
        most = static_cast<const shapes::Mesh&>(*shape).triangle_count;
        best = shape;
      }
  return best;
}

class Comparison
{
public:
  explicit Comparison(const Options& options)
    : options_(options)
    , scene_(std::make_shared<planning_scene::PlanningScene>(loadRobot(options)))
    , random_(static_cast<std::uint32_t>(options.number("seed", 0)))
  {
    request_.group_name = options.values.at("group");
    if (!request_.group_name.empty() && !scene_->getRobotModel()->hasJointModelGroup(request_.group_name))
      throw std::invalid_argument("the SRDF has no group '" + request_.group_name + "'");
    scene_->getCurrentStateNonConst().setToDefaultValues();
    for (const auto& state : scene_->getRobotModel()->getJointModelGroups())
      for (const std::string& name : state->getDefaultStateNames())
        if (name == "home" || name == "ready")
          scene_->getCurrentStateNonConst().setToDefaultValues(state, name);
    scene_->getCurrentStateNonConst().update();
  }

  void run()
  {
    waitForModels();
    compare("no objects");
    fill("boxes");
    compare("boxes");
    if (const shapes::ShapeConstPtr mesh = someMesh(*scene_->getRobotModel()))
    {
      fill("meshes", mesh);
      compare("meshes");
    }
    else
      std::printf("\nno world of meshes: the robot has none to fill it with\n");
  }

private:
  double uniform(double low, double high)
  {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  void use(const std::string& detector)
  {
    if (detector == "FCL")
      scene_->allocateCollisionDetector(cd::CollisionDetectorAllocatorFCL::create());
    else if (detector == "Bullet")
      scene_->allocateCollisionDetector(cd::CollisionDetectorAllocatorBullet::create());
    else if (detector == "Spheres")
      scene_->allocateCollisionDetector(morphit_moveit::CollisionDetectorAllocatorSpheres::create());
    else if (detector == "SpheresFCL")
      scene_->allocateCollisionDetector(morphit_moveit::CollisionDetectorAllocatorSpheresFCL::create());
    else
      scene_->allocateCollisionDetector(morphit_moveit::CollisionDetectorAllocatorSuperovoid::create());
  }

  void waitForModels()
  {
    const auto slot = morphit_moveit::SphereModels::instance().slot(scene_->getRobotModel());
    const auto superovoids = morphit_moveit::SuperovoidModels::instance().slot(scene_->getRobotModel());
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.number("wait", 0.0));
    while ((slot->get()->content_hash.empty() || superovoids->get()->content_hash.empty()) &&
           std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    static const std::map<morphit_moveit::SphereLink::Source, const char*> NAMES{
      { morphit_moveit::SphereLink::Source::OWN, "own" },
      { morphit_moveit::SphereLink::Source::FITTED, "fitted" },
      { morphit_moveit::SphereLink::Source::PLAIN, "plain" }
    };
    for (const auto& link : slot->get()->links)
      std::printf("%-32s %3zu spheres, %s\n", link.link->getName().c_str(), link.body.spheres.size(), NAMES.at(link.source));
    for (const auto& link : superovoids->get()->links)
      std::printf("%-32s %3zu superovoids, grown by %.1f mm\n", link.link->getName().c_str(), link.pieces.size(),
                  1000.0 * link.growth);
  }

  /** Objects around the robot as in MoveIt's comparison: at random, but clear of the present state, by so much that its
   * links may be a little larger. */
  void fill(const std::string& kind, const shapes::ShapeConstPtr& mesh = nullptr)
  {
    use("FCL");
    scene_->getWorldNonConst()->clearObjects();
    const std::size_t objects = options_.count("objects", 1);
    for (std::size_t i = 0, tried = 0; i < objects && tried < 20 * objects; ++tried)
    {
      Eigen::Isometry3d pose = Eigen::Isometry3d::Identity();
      pose.translation() = Eigen::Vector3d(uniform(-1, 1), uniform(-1, 1), uniform(0, 1));
      std::normal_distribution<double> normal;
      pose.linear() = Eigen::Quaterniond(normal(random_), normal(random_), normal(random_), normal(random_))
                          .normalized()
                          .toRotationMatrix();
      shapes::ShapePtr shape;
      if (mesh)
      {
        shape.reset(mesh->clone());
        shape->scale(uniform(0.3, 1.0));
      }
      else
        shape = std::make_shared<shapes::Box>(uniform(0.05, 0.2), uniform(0.05, 0.2), uniform(0.05, 0.2));
      const std::string name = kind + std::to_string(i);
      scene_->getWorldNonConst()->addToObject(name, shape, pose);
      if (clearances(scene_->getCurrentState()).second < options_.number("clearance", 0.0))
        scene_->getWorldNonConst()->removeObject(name);
      else
        ++i;
    }
  }

  States randomStates()
  {
    States states;
    for (std::size_t i = 0; i < options_.count("states", 1); ++i)
    {
      RobotState state(scene_->getRobotModel());
      state.setToDefaultValues();
      for (const moveit::core::JointModel* joint : scene_->getRobotModel()->getActiveJointModels())
      {
        // Of joints without bounds MoveIt's random positions are zero or huge.
        std::vector<double> values(joint->getVariableCount());
        for (std::size_t k = 0; k < values.size(); ++k)
        {
          const auto& bounds = joint->getVariableBounds()[k];
          const bool finite = bounds.position_bounded_ && std::abs(bounds.max_position_) < 10.0;
          values[k] = finite ? uniform(bounds.min_position_, bounds.max_position_) : uniform(-M_PI, M_PI);
        }
        state.setJointPositions(joint, values);
      }
      state.update();
      states.push_back(state);
    }
    return states;
  }

  bool collides(const RobotState& state, const cd::CollisionRequest& request) const
  {
    cd::CollisionResult result;
    scene_->checkCollision(request, result, state);
    return result.collision;
  }

  /** Checks a second, by all threads together. */
  double rate(const States& states, const cd::CollisionRequest& request) const
  {
    const double seconds = options_.number("seconds", 0.01);
    std::atomic<std::size_t> checks{ 0 };
    const auto work = [&] {
      const auto start = std::chrono::steady_clock::now();
      std::size_t done = 0;
      double spent = 0.0;
      while (spent < seconds)
      {
        for (std::size_t k = 0; k < 50; ++k, ++done)
          collides(states[done % states.size()], request);
        spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      }
      checks += static_cast<std::size_t>(static_cast<double>(done) * seconds / spent);
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < options_.count("threads", 1); ++i)
      threads.emplace_back(work);
    for (std::thread& thread : threads)
      thread.join();
    return static_cast<double>(checks) / seconds;
  }

  void compare(const std::string& world)
  {
    const States states = randomStates();
    use("FCL");
    std::vector<bool> truth;
    States free, colliding;
    for (const RobotState& state : states)
    {
      truth.push_back(collides(state, request_));
      (truth.back() ? colliding : free).push_back(state);
    }
    std::vector<double> clearance;
    for (std::size_t i = 0; i < std::min(states.size(), options_.count("distances", 1)); ++i)
      clearance.push_back(distance(states[i]));
    std::printf("\n%s: %zu random states, %zu of them collide by FCL\n", world.c_str(), states.size(), colliding.size());
    std::printf("%-12s %10s %10s %10s %10s %10s %8s %8s %9s %13s %14s\n", "detector", "present/s", "free/s",
                "coll./s", "random/s", "contacts/s", "missed", "extra", "dist./s", "too far [mm]", "too near [mm]");
    cd::CollisionRequest contacts = request_;
    contacts.contacts = true;
    contacts.max_contacts = 99;
    contacts.max_contacts_per_pair = 10;
    for (const char* detector : { "FCL", "Bullet", "SpheresFCL", "Spheres", "Superovoid" })
    {
      use(detector);
      std::size_t missed = 0, extra = 0;
      for (std::size_t i = 0; i < states.size(); ++i)
      {
        const bool found = collides(states[i], request_);
        missed += !found && truth[i] ? 1 : 0;
        extra += found && !truth[i] ? 1 : 0;
      }
      std::printf("%-12s %10.0f %10.0f %10.0f %10.0f %10.0f %8zu %8zu", detector,
                  rate({ scene_->getCurrentState() }, request_), free.empty() ? 0.0 : rate(free, request_),
                  colliding.empty() ? 0.0 : rate(colliding, request_), rate(states, request_), rate(states, contacts),
                  missed, extra);
      if (std::string(detector) != "Bullet")
      {
        double worst = -std::numeric_limits<double>::infinity(), sum = 0.0;
        std::size_t count = 0;
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < clearance.size(); ++i)
        {
          const double found = distance(states[i]);
          if (clearance[i] <= 0.0)
            continue;
          worst = std::max(worst, found - clearance[i]);
          sum += clearance[i] - found;
          ++count;
        }
        const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        std::printf(" %9.0f %13.4f %14.4f", static_cast<double>(clearance.size()) / spent, 1000.0 * worst,
                    1000.0 * sum / static_cast<double>(std::max<std::size_t>(count, 1)));
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }

  /** To the robot itself and to the world [m]. */
  std::pair<double, double> clearances(const RobotState& state) const
  {
    cd::DistanceRequest request;
    request.group_name = request_.group_name;
    request.enableGroup(scene_->getRobotModel());
    request.acm = &scene_->getAllowedCollisionMatrix();
    cd::DistanceResult self, world;
    scene_->getCollisionEnvUnpadded()->distanceSelf(request, self, state);
    scene_->getCollisionEnv()->distanceRobot(request, world, state);
    return { self.minimum_distance.distance, world.minimum_distance.distance };
  }

  double distance(const RobotState& state) const
  {
    const auto [self, world] = clearances(state);
    return std::min(self, world);
  }

  const Options& options_;
  planning_scene::PlanningScenePtr scene_;
  std::mt19937 random_;
  cd::CollisionRequest request_;
};
}  // namespace

int main(int argc, char** argv)
{
  const std::vector<std::string> arguments = rclcpp::init_and_remove_ros_arguments(argc, argv);
  int status = 0;
  try
  {
    const Options options(arguments);
    Comparison(options).run();
  }
  catch (const std::invalid_argument& error)
  {
    std::fprintf(stderr, "%s\n", error.what());
    status = 2;
  }
  rclcpp::shutdown();
  return status;
}
