#pragma once
// What a person may ask of a run beside image, command, mounts, variables and devices. Plain
// values, recorded as they are (mlenv.run/1 `start.options`).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlenv {

/// Nothing: not limited beyond what limits mlenv itself.
struct JobLimits {
  std::optional<std::uint64_t> memory_bytes;
  /// Memory and swap together; nothing: twice the memory, where the kernel counts swap.
  std::optional<std::uint64_t> memory_swap_bytes;
  bool unlimited_swap = false;        ///< in place of a number
  std::optional<double> cpus;         ///< processor time for each second
  std::optional<std::string> cpuset;  ///< `0-2,7`
  std::optional<std::uint64_t> pids;  ///< processes and threads
  friend bool operator==(const JobLimits&, const JobLimits&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("memory_bytes", self.memory_bytes);
    visit("memory_swap_bytes", self.memory_swap_bytes);
    visit("unlimited_swap", self.unlimited_swap);
    visit("cpus", self.cpus);
    visit("cpuset", self.cpuset);
    visit("pids", self.pids);
  }
};

struct Ulimit {
  std::string name;                   ///< as setrlimit(2) has it, in small letters: `nofile`
  std::optional<std::uint64_t> soft;  ///< nothing: unlimited
  std::optional<std::uint64_t> hard;
  friend bool operator==(const Ulimit&, const Ulimit&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("soft", self.soft);
    visit("hard", self.hard);
  }
};

struct PublishedPort {
  std::string address;  ///< of the host, IPv4
  std::uint64_t host = 0;
  std::uint64_t container = 0;
  std::string protocol = "tcp";
  /// `127.0.0.1:8080`
  std::string on_host() const { return address + ":" + std::to_string(host); }
  friend bool operator==(const PublishedPort&, const PublishedPort&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("address", self.address);
    visit("host", self.host);
    visit("container", self.container);
    visit("protocol", self.protocol);
  }
};

/// A folder in memory.
struct MemoryFolder {
  std::string target;
  std::vector<std::string> options;  ///< of mount(8)
  friend bool operator==(const MemoryFolder&, const MemoryFolder&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("target", self.target);
    visit("options", self.options);
  }
};

struct JobLabel {
  std::string name;
  std::string value;
  friend bool operator==(const JobLabel&, const JobLabel&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("value", self.value);
  }
};

struct JobOptions {
  JobLimits limits;
  std::vector<Ulimit> ulimits;
  std::optional<std::uint64_t> shm_bytes;   ///< nothing: up to half of the memory
  std::optional<std::uint64_t> disk_bytes;  ///< of a virtual machine, for what is written
  std::vector<MemoryFolder> tmpfs;
  bool read_only = false;               ///< the image; /tmp and HOME can be written
  std::optional<std::string> user;      ///< `USER[:GROUP]`; nothing: the image's
  std::vector<std::string> groups;      ///< supplementary, by name or number
  std::optional<std::string> hostname;  ///< nothing: the host's
  std::string network = "host";         ///< or `none`, `private`
  std::vector<PublishedPort> ports;
  bool rdma = false;  ///< InfiniBand devices
  std::vector<JobLabel> labels;
  friend bool operator==(const JobOptions&, const JobOptions&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("limits", self.limits);
    visit("ulimits", self.ulimits);
    visit("shm_bytes", self.shm_bytes);
    visit("disk_bytes", self.disk_bytes);
    visit("tmpfs", self.tmpfs);
    visit("read_only", self.read_only);
    visit("user", self.user);
    visit("groups", self.groups);
    visit("hostname", self.hostname);
    visit("network", self.network);
    visit("ports", self.ports);
    visit("rdma", self.rdma);
    visit("labels", self.labels);
  }
};

}  // namespace mlenv
