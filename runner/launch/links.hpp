#pragma once
// Network devices of a namespace, made through netlink (rtnetlink(7)): what the program `ip` does,
// without it. A socket speaks of the namespace in which it was made, wherever its owner goes.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/handle.hpp"

namespace mlenv::job {

/// An IPv4 address, as it is written.
using Address = std::array<std::uint8_t, 4>;
std::string shown(const Address& address);

/// One end of a pair of devices, such as is joined by a cable.
struct CableEnd {
  std::string name;
  std::array<std::uint8_t, 6> hardware_address{};
};

class Links {
 public:
  /// Of the calling thread's network namespace. Throws `no-node`, as all below do.
  Links();
  /// A bridge, switched on.
  void add_bridge(std::string_view name, int index);
  /// A pair: `port` here, on the bridge of that index and switched on; `far` in the namespace that
  /// `far_namespace` (open) is.
  void add_cable(std::string_view port, int bridge, const CableEnd& far, int far_namespace);
  void switch_on(int index);
  void add_address(int index, const Address& address, unsigned prefix);
  /// The loopback is the first device of every namespace.
  static constexpr int kLoopback = 1;

 private:
  void ask(std::string_view request, std::string_view what);
  Fd socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace mlenv::job
