#include <sys/utsname.h>
#include <unistd.h>

#include <sys/timex.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

/// Of uname(2) for this host, else from /proc/sys/kernel.
void kernel_facts(const FactSources& from, SystemFacts& facts) {
  utsname names{};
  if (from.live() && ::uname(&names) == 0) {
    facts.kernel = known(std::string(names.release), "uname");
    facts.architecture = known(std::string(names.machine), "uname");
    return;
  }
  facts.kernel = file_text(from, "/proc/sys/kernel/osrelease");
  facts.architecture = file_text(from, "/proc/sys/kernel/arch");
}

Text container(const FactSources& from) {
  if (Text name = file_text(from, "/run/systemd/container"); name && !name->empty()) {
    return name;
  }
  if (present(from, "/run/.containerenv"))
    return known<std::string>("podman", "/run/.containerenv");
  if (present(from, "/.dockerenv")) return known<std::string>("docker", "/.dockerenv");
  if (present(from, "/.singularity.d")) {
    return known<std::string>("apptainer", "/.singularity.d");
  }
  const Text groups = file_text(from, "/proc/self/cgroup");
  if (groups && groups->find("kubepods") != std::string::npos) {
    return known<std::string>("kubernetes", groups.source);
  }
  Text space = link_target(from, "/proc/self/ns/pid");
  if (!space) return space;
  return known<std::string>(*space == "pid:[4026531836]" ? "none" : "unidentified", space.source);
}

}  // namespace

SystemFacts probe_system(const FactSources& from) {
  SystemFacts facts;
  const Text release = os_release(from);
  facts.distribution = named_value(release, "ID", '=');
  facts.distribution_version = named_value(release, "VERSION_ID", '=');
  facts.distribution_codename = named_value(release, "VERSION_CODENAME", '=');
  facts.distribution_title = named_value(release, "PRETTY_NAME", '=');
  kernel_facts(from, facts);
  facts.wsl = derived<bool>(facts.kernel, [](const std::string& kernel) {
    return std::optional<bool>(to_lower(kernel).find("microsoft") != std::string::npos);
  });
  facts.container = container(from);
  facts.user_id = from.live() ? known<std::uint64_t>(::geteuid(), "geteuid")
                              : unknown<std::uint64_t>("not recorded");
  return facts;
}

namespace {

Truth synchronised(const FactSources& from) {
  if (!from.live()) {
    // systemd-timesyncd(8) makes it at its first answer.
    return present(from, "/run/systemd/timesync/synchronized")
               ? known(true, "/run/systemd/timesync/synchronized")
               : unknown<bool>("/run/systemd/timesync/synchronized is absent");
  }
  timex state{};
  const int answer = ::adjtimex(&state);
  if (answer < 0) return unknown<bool>("adjtimex: " + errno_text(errno));
  return known(answer != TIME_ERROR && (state.status & STA_UNSYNC) == 0, "adjtimex");
}

}  // namespace

TimeFacts probe_time(const FactSources& from) {
  // As comm has them: cut to 15 bytes.
  constexpr std::array<std::string_view, 6> kServices = {"chronyd",  "ntpd",    "ntpd-rs",
                                                         "openntpd", "phc2sys", "systemd-timesyn"};
  TimeFacts facts;
  facts.synchronised = synchronised(from);
  facts.services = derived<std::vector<std::string>>(
      running_programs(from), [&](const std::vector<std::string>& running) {
        std::vector<std::string> found;
        for (const std::string_view name : kServices) {
          if (!std::binary_search(running.begin(), running.end(), name)) continue;
          found.emplace_back(name == "systemd-timesyn" ? "systemd-timesyncd" : name);
        }
        return std::optional(found);
      });
  facts.clock_source = file_text(from,
                                 "/sys/devices/system/clocksource/clocksource0/"
                                 "current_clocksource");
  return facts;
}

}  // namespace mlenv
