#pragma once
// What a message between a job's controller and a node may say, whatever its sender is: addresses,
// names, digests, numbers and lengths. MessageReader asks before anybody sees a message.
#include <string_view>

#include "runner/job/messages.hpp"

namespace mlenv::job {

/// Throws `bad-stream`, naming the message and what in it cannot be.
void require_sound(const Message& message);

/// Of a controller to a node.
bool is_for_nodes(const Message& message);

/// An IPv4 or IPv6 address, as inet_ntop(3) writes it.
bool is_address(std::string_view text);
/// What may stand in /etc/hosts for a host: letters, digits, `.`, `-` and `_`.
bool is_host_name(std::string_view text);

/// A text of somebody else's, for a person: one line, and not more of it than a screen holds.
std::string shown_text(std::string_view text);

}  // namespace mlenv::job
