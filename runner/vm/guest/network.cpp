#include "runner/vm/guest/network.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace mlenv::vm {
namespace {

constexpr const char* kDevice = "eth0";
constexpr const char* kAddress = "10.0.2.15";
constexpr const char* kMask = "255.255.255.0";
constexpr const char* kGateway = "10.0.2.2";

sockaddr address_of(const char* text) {
  sockaddr_in internet{};
  internet.sin_family = AF_INET;
  ::inet_pton(AF_INET, text, &internet.sin_addr);
  sockaddr plain{};
  std::memcpy(&plain, &internet, sizeof internet);
  return plain;
}

ifreq request_of(const char* device) {
  ifreq request{};
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  return request;
}

bool set_address(int socket, unsigned long what, const char* text) {
  ifreq request = request_of(kDevice);
  request.ifr_addr = address_of(text);  // NOLINT: a union of ioctl(2)
  return ::ioctl(socket, what, &request) == 0;
}

bool raise(int socket, const char* device) {
  ifreq request = request_of(device);
  request.ifr_flags = IFF_UP | IFF_RUNNING;  // NOLINT: a union of ioctl(2)
  return ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
}

bool add_route(int socket) {
  rtentry route{};
  route.rt_dst = address_of("0.0.0.0");
  route.rt_genmask = address_of("0.0.0.0");
  route.rt_gateway = address_of(kGateway);
  route.rt_flags = RTF_UP | RTF_GATEWAY;
  return ::ioctl(socket, SIOCADDRT, &route) == 0;
}

void wait_for_device() {
  constexpr int kTries = 2000;
  constexpr int kPause = 5;  // milliseconds
  for (int tries = 0; tries < kTries && ::if_nametoindex(kDevice) == 0; ++tries) {
    ::poll(nullptr, 0, kPause);
  }
}

}  // namespace

void raise_loopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  (void)raise(fd, "lo");
  ::close(fd);
}

std::string raise_network() {
  wait_for_device();
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool up = set_address(fd, SIOCSIFADDR, kAddress) &&
                  set_address(fd, SIOCSIFNETMASK, kMask) && raise(fd, kDevice) && add_route(fd);
  const int error = errno;
  ::close(fd);
  if (up) return {};
  return std::string("cannot set up the network: ") + ::strerrordesc_np(error);
}

}  // namespace mlenv::vm
