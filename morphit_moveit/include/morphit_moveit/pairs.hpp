// Which pairs of bodies a request is about: the rules of MoveIt's own callbacks.
#pragma once

#include <set>
#include <string>

#include <moveit/collision_detection/collision_common.hpp>
#include <moveit/collision_detection/collision_matrix.hpp>
#include <moveit/robot_state/attached_body.hpp>

namespace morphit_moveit
{
using ActiveLinks = std::set<const moveit::core::LinkModel*>;

/** A link, a body that one carries, or an object of the world. */
struct BodyName
{
  const std::string& name;
  const moveit::core::LinkModel* link = nullptr;  // that it is, or is attached to
  const moveit::core::AttachedBody* attached = nullptr;
};

/** Whether one of the two belongs to the active links, if there are any. */
inline bool isActive(const BodyName& a, const BodyName& b, const ActiveLinks* active)
{
  return !active || (a.link && active->count(a.link) > 0) || (b.link && active->count(b.link) > 0);
}

/** Whether a body is a carried one and the other a link that it may touch. */
inline bool mayTouch(const BodyName& body, const BodyName& link)
{
  return body.attached && link.link && !link.attached && body.attached->getTouchLinks().count(link.name) > 0;
}

/** What the matrix says of a pair; NEVER (never allowed) without a matrix or an entry. */
inline collision_detection::AllowedCollision::Type allowance(const std::string& a, const std::string& b,
                                                             const collision_detection::AllowedCollisionMatrix* acm)
{
  collision_detection::AllowedCollision::Type type;
  return acm && acm->getAllowedCollision(a, b, type) ? type : collision_detection::AllowedCollision::NEVER;
}

/** Whether a request of distances is about a pair. */
inline bool isAsked(const BodyName& a, const BodyName& b, const collision_detection::DistanceRequest& req)
{
  return isActive(a, b, req.active_components_only) &&
         allowance(a.name, b.name, req.acm) != collision_detection::AllowedCollision::ALWAYS && !mayTouch(a, b) &&
         !mayTouch(b, a);
}
}  // namespace morphit_moveit
