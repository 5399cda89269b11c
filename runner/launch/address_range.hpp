#pragma once
// Addresses of the nodes that one machine plays.
#include <string_view>

#include "runner/launch/links.hpp"

namespace mlenv::job {

/// `A.B.0.0/16`.
struct AddressRange {
  std::uint8_t first = 0;
  std::uint8_t second = 0;
  static constexpr unsigned kPrefix = 16;
  /// Of node 0, 1 …
  Address of(std::size_t node) const;
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

/// A private one, `10.X.0.0`, that no route of `routes` (/proc/net/route; proc(5)) touches but
/// those to everywhere: so an address in a log means one machine. Where all are taken it is
/// 198.18.0.0, which is for tests (RFC 2544). The same machine gives the same.
AddressRange free_range(std::string_view routes);

}  // namespace mlenv::job
