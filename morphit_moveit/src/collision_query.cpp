#include <morphit_moveit/collision_query.hpp>

#include <algorithm>
#include <limits>

namespace morphit_moveit
{
namespace cd = collision_detection;

namespace
{
cd::Contact contactOf(const BodyName& a, cd::BodyType type_a, const BodyName& b, cd::BodyType type_b,
                      const Meeting& meeting)
{
  cd::Contact contact;
  contact.pos = 0.5 * (meeting.first + meeting.second);
  contact.normal = meeting.normal;
  contact.depth = -meeting.distance;
  contact.body_name_1 = a.name;
  contact.body_type_1 = type_a;
  contact.body_name_2 = b.name;
  contact.body_type_2 = type_b;
  contact.nearest_points[0] = meeting.first;
  contact.nearest_points[1] = meeting.second;
  return contact;
}
}  // namespace

CollisionQuery::CollisionQuery(const moveit::core::RobotModelConstPtr& robot, const FclObjects& objects,
                               const moveit::core::RobotState& state, const cd::CollisionRequest& req,
                               cd::CollisionResult& res, const cd::AllowedCollisionMatrix* acm)
  : objects_(objects), state_(state), req_(req), res_(res), acm_(acm), data_(&req, &res, acm)
{
  data_.enableGroup(robot);
}

void CollisionQuery::collide(const BodyName& a, cd::BodyType type_a, const BodyName& b, cd::BodyType type_b,
                             const Meetings& meetings)
{
  const cd::AllowedCollision::Type allowed = allowance(a.name, b.name, acm_);
  if (allowed == cd::AllowedCollision::ALWAYS)
    return;
  std::vector<cd::Contact>* stored = nullptr;
  std::size_t wanted = 0;
  if (req_.contacts && res_.contact_count < req_.max_contacts)
  {
    stored = &res_.contacts[std::minmax(a.name, b.name)];
    if (stored->size() < req_.max_contacts_per_pair)
      wanted = std::min(req_.max_contacts_per_pair - stored->size(), req_.max_contacts - res_.contact_count);
  }
  cd::DecideContactFn decide;
  if (allowed == cd::AllowedCollision::CONDITIONAL)
    acm_->getAllowedCollision(a.name, b.name, decide);
  else
    res_.collision = true;
  if (decide || wanted > 0)
  {
    for (const Meeting& meeting : meetings(decide ? std::numeric_limits<std::size_t>::max() : wanted))
    {
      cd::Contact contact = contactOf(a, type_a, b, type_b, meeting);
      if (decide && decide(contact))
        continue;
      res_.collision = true;
      if (wanted == 0)
        break;
      stored->push_back(contact);
      ++res_.contact_count;
      --wanted;
    }
  }
  if (stored && stored->empty())
    res_.contacts.erase(std::minmax(a.name, b.name));
  if (res_.collision && (!req_.contacts || res_.contact_count >= req_.max_contacts))
    data_.done_ = true;
  else if (req_.is_done)
    data_.done_ = req_.is_done(res_);
}

bool CollisionQuery::settle(const BodyName& a, const BodyName& b)
{
  if (req_.contacts)
    return false;
  const cd::AllowedCollision::Type allowed = allowance(a.name, b.name, acm_);
  if (allowed == cd::AllowedCollision::CONDITIONAL)
    return false;
  if (allowed == cd::AllowedCollision::NEVER)
    res_.collision = data_.done_ = true;
  return true;
}

void CollisionQuery::confirm(fcl::CollisionObjectd& a, fcl::CollisionObjectd& b)
{
  cd::collisionCallback(&a, &b, &data_);
}

void CollisionQuery::confirm(const PlacedLink& link, fcl::CollisionObjectd& other)
{
  objects_.visitLink(*link.part->link, state_, [&](fcl::CollisionObjectd& object) {
    confirm(object, other);
    return done();
  });
}

void CollisionQuery::confirm(const PlacedLink& a, const PlacedLink& b)
{
  objects_.visitLink(*a.part->link, state_, [&](fcl::CollisionObjectd& object) {
    confirm(b, object);
    return done();
  });
}

void CollisionQuery::confirm(const PlacedLink& link, const WorldShape& shape)
{
  objects_.visitShape(shape, [&](fcl::CollisionObjectd& object) {
    confirm(link, object);
    return done();
  });
}
}  // namespace morphit_moveit
