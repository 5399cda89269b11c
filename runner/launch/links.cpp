#include "runner/launch/links.hpp"

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"

namespace mlenv::job {
namespace {

/// A message under construction. Lengths are filled in when a part is closed.
class Request {
 public:
  Request(std::uint16_t type, std::uint16_t flags) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    put(header);
  }

  template <class Part>
  void put(const Part& part) {
    bytes_.append(reinterpret_cast<const char*>(&part), sizeof part);  // NOLINT: a kernel's struct
    pad();
  }
  void attribute(std::uint16_t type, std::string_view value) {
    const std::size_t at = open(type);
    bytes_.append(value);
    close(at);
  }
  template <class Value>
  void number(std::uint16_t type, Value value) {
    const std::size_t at = open(type);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);  // NOLINT: its bytes
    close(at);
  }
  /// A name, with the zero byte that the kernel wants.
  void name(std::uint16_t type, std::string_view value) {
    attribute(type, std::string(value) + '\0');
  }
  /// Attributes up to close(), with what open() gave, lie in this one.
  std::size_t open(std::uint16_t type) {
    const std::size_t at = bytes_.size();
    rtattr header{};
    header.rta_type = type;
    put(header);
    return at;
  }
  void close(std::size_t at) {
    const auto length = static_cast<std::uint16_t>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at + offsetof(rtattr, rta_len), &length, sizeof length);
    pad();
  }
  std::string_view finished() {
    const auto length = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data() + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
    return bytes_;
  }

 private:
  void pad() { bytes_.resize((bytes_.size() + NLMSG_ALIGNTO - 1) & ~(NLMSG_ALIGNTO - 1U)); }
  std::string bytes_;
};

ifinfomsg link_of(int index, bool on) {
  ifinfomsg link{};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = index;
  if (on) link.ifi_flags = link.ifi_change = IFF_UP;
  return link;
}

Error no_node_network(std::string_view what, int error) {
  Error refusal = failure("no-node", "cannot make a network for nodes on this machine");
  refusal.because(fmt::format("{}: {}", what, errno_text(error)));
  if (error == EOPNOTSUPP || error == EAFNOSUPPORT) {
    return std::move(refusal).hint(
        "this kernel lacks bridges or pairs of network devices: let root run `modprobe bridge "
        "veth`, or take another engine");
  }
  return refusal;
}

constexpr std::uint16_t kCreateNew = NLM_F_CREATE | NLM_F_EXCL;

}  // namespace

std::string shown(const Address& address) {
  return fmt::format("{}.{}.{}.{}", address[0], address[1], address[2], address[3]);
}

Links::Links() : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {
  if (!socket_) throw no_node_network("netlink", errno);
  // The kernel answers at once; a wait without an end would be one all the same.
  constexpr timeval kMost{10, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kMost, sizeof kMost);
}

void Links::ask(std::string_view request, std::string_view what) {
  std::string bytes(request);
  const std::uint32_t sequence = ++sequence_;
  std::memcpy(bytes.data() + offsetof(nlmsghdr, nlmsg_seq), &sequence, sizeof sequence);
  if (::send(socket_.get(), bytes.data(), bytes.size(), 0) < 0) throw no_node_network(what, errno);
  std::array<char, 8192> answer{};
  while (true) {
    const ssize_t count = ::recv(socket_.get(), answer.data(), answer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw no_node_network(what, errno);
    nlmsghdr header{};
    nlmsgerr verdict{};
    constexpr std::size_t kWhole = NLMSG_HDRLEN + sizeof verdict.error;
    if (static_cast<std::size_t>(count) < kWhole) throw no_node_network(what, EPROTO);
    std::memcpy(&header, answer.data(), sizeof header);
    std::memcpy(&verdict.error, answer.data() + NLMSG_HDRLEN, sizeof verdict.error);
    if (header.nlmsg_type != NLMSG_ERROR || header.nlmsg_seq != sequence) continue;
    if (verdict.error != 0) throw no_node_network(what, -verdict.error);
    return;
  }
}

void Links::add_bridge(std::string_view name, int index) {
  Request request{RTM_NEWLINK, kCreateNew};
  request.put(link_of(index, true));
  request.name(IFLA_IFNAME, name);
  const std::size_t info = request.open(IFLA_LINKINFO);
  request.attribute(IFLA_INFO_KIND, "bridge");
  request.close(info);
  ask(request.finished(), "a bridge");
}

void Links::add_cable(std::string_view port, int bridge, const CableEnd& far, int far_namespace) {
  Request request{RTM_NEWLINK, kCreateNew};
  request.put(link_of(0, true));
  request.name(IFLA_IFNAME, port);
  request.number(IFLA_MASTER, bridge);
  const std::size_t info = request.open(IFLA_LINKINFO);
  request.attribute(IFLA_INFO_KIND, "veth");
  const std::size_t data = request.open(IFLA_INFO_DATA);
  const std::size_t peer = request.open(VETH_INFO_PEER);
  request.put(link_of(0, false));
  request.name(IFLA_IFNAME, far.name);
  request.number(IFLA_ADDRESS, far.hardware_address);
  request.number(IFLA_NET_NS_FD, far_namespace);
  request.close(peer);
  request.close(data);
  request.close(info);
  ask(request.finished(), fmt::format("a device `{}`", far.name));
}

void Links::switch_on(int index) {
  Request request{RTM_NEWLINK, 0};
  request.put(link_of(index, true));
  ask(request.finished(), "switching a device on");
}

void Links::add_address(int index, const Address& address, unsigned prefix) {
  Request request{RTM_NEWADDR, kCreateNew};
  ifaddrmsg message{};
  message.ifa_family = AF_INET;
  message.ifa_prefixlen = static_cast<std::uint8_t>(prefix);
  message.ifa_index = static_cast<std::uint32_t>(index);
  request.put(message);
  request.number(IFA_LOCAL, address);
  request.number(IFA_ADDRESS, address);
  Address last = address;
  for (unsigned bit = prefix; bit < 32; ++bit) last[bit / 8] |= 0x80U >> (bit % 8);
  request.number(IFA_BROADCAST, last);
  ask(request.finished(), "an address");
}

}  // namespace mlenv::job
