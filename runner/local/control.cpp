#include "runner/local/control.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <array>
#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

constexpr std::size_t kMostFiles = 3;
constexpr std::size_t kMostPacketBytes = std::size_t{1} << 20;
constexpr const char* kSocketName = "control";

Fd make_socket() {
  Fd fd{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  if (!fd) throw os_error(errno, "cannot make a socket");
  return fd;
}

/// By way of the open folder: an address holds 108 bytes, a path may be longer (unix(7)).
sockaddr_un control_address(const Fd& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), kSocketName);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

/// POSIX has addresses of all kinds pass as one.
const sockaddr* as_address(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT(*-reinterpret-cast)
}

ExecRequest exec_of(const json& value) {
  ExecRequest request;
  request.argv = value.at("argv").get<std::vector<std::string>>();
  request.env = value.at("env").get<std::vector<std::string>>();
  request.workdir = value.at("workdir");
  request.term = value.at("term");
  request.terminal = value.at("terminal");
  request.rows = value.at("rows");
  request.columns = value.at("columns");
  return request;
}

}  // namespace

Fd listen_for_control(const fs::path& run_folder) {
  const Fd folder = open_file(run_folder, O_PATH | O_DIRECTORY);
  Fd fd = make_socket();
  const sockaddr_un address = control_address(folder);
  constexpr int kWaiting = 64;
  // The folder is its owner's alone; the socket's own mode says so again.
  const mode_t before = ::umask(0177);
  // Of a process that was killed: whoever listens holds the record.
  ::unlinkat(folder.get(), std::string(kSocketName).c_str(), 0);
  const bool bound = ::bind(fd.get(), as_address(address), sizeof address) == 0;
  const int error = errno;
  ::umask(before);
  if (!bound)
    throw os_error(error, "cannot make the socket `{}/{}`", run_folder.string(), kSocketName);
  if (::listen(fd.get(), kWaiting) != 0) throw os_error(errno, "cannot listen for commands");
  return fd;
}

Fd connect_to_run(const fs::path& run_folder, std::string_view id) {
  const auto refused = [&](int error) {
    if (error == EACCES || error == EPERM) {
      return failure("permission", "run `{}` is somebody else's", id)
          .hint("only its own user and root may control it");
    }
    return refusal("run-ended", "run `{}` does not go on", id)
        .hint("`mlenv ps` lists those that do");
  };
  const Fd folder{::open(run_folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!folder) throw refused(errno);
  Fd fd = make_socket();
  const sockaddr_un address = control_address(folder);
  // A mlenv that is stopped takes nobody in, and its queue may be full.
  constexpr timeval kMost{10, 0};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kMost, sizeof kMost);
  if (::connect(fd.get(), as_address(address), sizeof address) != 0) {
    if (errno == EAGAIN) throw no_answer_of_run(id);
    throw refused(errno);
  }
  return fd;
}

Error no_answer_of_run(std::string_view id) {
  return failure("run-unseen", "the mlenv of run `{}` does not answer", id)
      .because("it is stopped, or waits for storage or a driver that does not answer")
      .hint("`kill -CONT` lets a stopped one go on; `kill -9` of it ends the run");
}

Packet receive_packet_within(int socket, std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return {};
    pollfd one{socket, POLLIN, 0};
    if (::poll(&one, 1, static_cast<int>(left.count())) > 0) return receive_packet(socket);
  }
}

bool send_packet(int socket, std::string_view bytes, const std::vector<int>& files) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};  // NOLINT(*-const-cast)
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    const std::size_t size = files.size() * sizeof(int);
    message.msg_control = room.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), files.data(), size);
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno == EMSGSIZE) {
      throw usage_error("usage", "the command and its variables are too long to pass on")
          .hint("put them into a file");
    }
    if (errno != EINTR) return false;
  }
  return true;
}

Packet receive_packet(int socket) {
  Packet packet;
  packet.bytes.resize(kMostPacketBytes);
  iovec part{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  ssize_t count = 0;
  // That the other side left without reading our last words is told before what it said, once.
  while ((count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 &&
         (errno == EINTR || errno == ECONNRESET)) {
  }
  packet.bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (count < 0) return packet;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> numbers((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(numbers.data(), CMSG_DATA(header), numbers.size() * sizeof(int));
    for (const int number : numbers) packet.files.emplace_back(number);
  }
  return packet;
}

std::string render_stop(const StopRequest& request) {
  return cbor_bytes(
      {{"do", "stop"}, {"grace_ms", request.grace_ms ? json(*request.grace_ms) : json()}});
}

std::string render_exec(const ExecRequest& request) {
  return cbor_bytes({{"do", "exec"},
                     {"argv", request.argv},
                     {"env", request.env},
                     {"workdir", request.workdir},
                     {"term", request.term},
                     {"terminal", request.terminal},
                     {"rows", request.rows},
                     {"columns", request.columns}});
}

std::string render_where() { return cbor_bytes({{"do", "where"}}); }

ControlRequest parse_request_packet(std::string_view bytes) {
  ControlRequest request;
  try {
    const json value = json::from_cbor(bytes.begin(), bytes.end());
    if (value.at("do") == "exec") {
      request.exec = exec_of(value);
    } else if (value.at("do") == "stop") {
      request.stop.emplace();
      if (!value.at("grace_ms").is_null()) request.stop->grace_ms = value.at("grace_ms");
    } else if (value.at("do") == "where") {
      request.where = true;
    }
  } catch (const json::exception&) {
    return {};  // another version of mlenv speaks there
  }
  return request;
}

}  // namespace mlenv
