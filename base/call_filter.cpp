#include "base/call_filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "base/error.hpp"

namespace mlenv {
namespace {

using Numbers = std::map<std::uint32_t, const CallFilter::Answer*>;

constexpr std::uint32_t kX32Bit = 0x40000000;  // __X32_SYSCALL_BIT

struct Numbered {
  std::string_view name;
  std::uint32_t number;
};

/// Newer than the libseccomp that we are built with; of one number on all architectures.
constexpr std::array kNewCalls{Numbered{"process_mrelease", 448},
                               Numbered{"futex_waitv", 449},
                               Numbered{"set_mempolicy_home_node", 450},
                               Numbered{"cachestat", 451},
                               Numbered{"fchmodat2", 452},
                               Numbered{"map_shadow_stack", 453},
                               Numbered{"futex_wake", 454},
                               Numbered{"futex_wait", 455},
                               Numbered{"futex_requeue", 456},
                               Numbered{"statmount", 457},
                               Numbered{"listmount", 458},
                               Numbered{"lsm_get_self_attr", 459},
                               Numbered{"lsm_set_self_attr", 460},
                               Numbered{"lsm_list_modules", 461},
                               Numbered{"mseal", 462},
                               Numbered{"setxattrat", 463},
                               Numbered{"getxattrat", 464},
                               Numbered{"listxattrat", 465},
                               Numbered{"removexattrat", 466},
                               Numbered{"open_tree_attr", 467}};

/// i386 has them beside socketcall(2) and ipc(2); libseccomp's numbers stand for both at once.
constexpr std::array kSplitCalls{
    Numbered{"socket", 359},      Numbered{"socketpair", 360}, Numbered{"bind", 361},
    Numbered{"connect", 362},     Numbered{"listen", 363},     Numbered{"accept4", 364},
    Numbered{"getsockopt", 365},  Numbered{"setsockopt", 366}, Numbered{"getsockname", 367},
    Numbered{"getpeername", 368}, Numbered{"sendto", 369},     Numbered{"sendmsg", 370},
    Numbered{"recvfrom", 371},    Numbered{"recvmsg", 372},    Numbered{"shutdown", 373},
    Numbered{"recvmmsg", 337},    Numbered{"sendmmsg", 345},   Numbered{"semget", 393},
    Numbered{"semctl", 394},      Numbered{"shmget", 395},     Numbered{"shmctl", 396},
    Numbered{"shmat", 397},       Numbered{"shmdt", 398},      Numbered{"msgget", 399},
    Numbered{"msgsnd", 400},      Numbered{"msgrcv", 401},     Numbered{"msgctl", 402}};

template <std::size_t Count>
std::optional<std::uint32_t> number_in(const std::array<Numbered, Count>& calls,
                                       std::string_view name) {
  const auto found = std::find_if(calls.begin(), calls.end(),
                                  [&](const Numbered& one) { return one.name == name; });
  if (found == calls.end()) return std::nullopt;
  return found->number;
}

std::uint32_t token_of(CallAbi abi) {
  switch (abi) {
    case CallAbi::x32:
      return SCMP_ARCH_X32;
    case CallAbi::i386:
      return SCMP_ARCH_X86;
    case CallAbi::aarch64:
      return SCMP_ARCH_AARCH64;
    case CallAbi::arm:
      return SCMP_ARCH_ARM;
    case CallAbi::x86_64:
      break;
  }
  return SCMP_ARCH_X86_64;
}

/// What the kernel tells a filter of a call's architecture.
std::uint32_t audit_arch(CallAbi abi) {
  switch (abi) {
    case CallAbi::i386:
      return AUDIT_ARCH_I386;
    case CallAbi::aarch64:
      return AUDIT_ARCH_AARCH64;
    case CallAbi::arm:
      return AUDIT_ARCH_ARM;
    case CallAbi::x86_64:
    case CallAbi::x32:
      break;
  }
  return AUDIT_ARCH_X86_64;
}

/// Written from its end to its start, since jumps lead forward: a position counts from the end.
class Program {
 public:
  std::size_t add(std::uint16_t code, std::uint32_t value) { return put({code, 0, 0, value}); }
  /// Where that action is returned; one that is near enough for a jump serves again.
  std::size_t answer(std::uint32_t action) {
    const auto known = answers_.find(action);
    constexpr std::size_t kNear = kFarthest / 2;
    if (known != answers_.end() && code_.size() - known->second < kNear) return known->second;
    return answers_[action] = add(BPF_RET | BPF_K, action);
  }
  /// A comparison with what was loaded.
  std::size_t branch(std::uint16_t compare, std::uint32_t value, std::size_t yes, std::size_t no) {
    yes = within_reach(yes);
    no = within_reach(no);
    const auto distance = [&](std::size_t to) {
      return static_cast<std::uint8_t>(code_.size() - to - 1);
    };
    return put({static_cast<std::uint16_t>(BPF_JMP | compare | BPF_K), distance(yes), distance(no),
                value});
  }
  /// What is added next goes on there.
  void go_on_at(std::size_t position) {
    if (position + 1 != code_.size()) jump(position);
  }
  std::string bytes() && {
    if (code_.size() > BPF_MAXINSNS) {
      throw Error(Kind::internal, "internal", "a filter of system calls is too long");
    }
    std::reverse(code_.begin(), code_.end());
    const auto* const first = reinterpret_cast<const char*>(code_.data());  // NOLINT: plain bytes
    return {first, code_.size() * sizeof(sock_filter)};
  }

 private:
  /// A comparison jumps over 255 at most; two jumps may come between.
  static constexpr std::size_t kFarthest = 250;
  std::size_t put(const sock_filter& one) {
    code_.push_back(one);
    return code_.size() - 1;
  }
  std::size_t jump(std::size_t to) {
    return add(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(code_.size() - to - 1));
  }
  std::size_t within_reach(std::size_t to) { return code_.size() - to < kFarthest ? to : jump(to); }
  std::vector<sock_filter> code_;
  std::map<std::uint32_t, std::size_t> answers_;
};

/// Calls with numbers from `first` on, up to the next range.
struct Range {
  std::uint32_t first;
  const CallFilter::Answer* answer;
};

std::vector<Range> ranges_of(const Numbers& numbers, const CallFilter::Answer& otherwise) {
  std::vector<Range> ranges{{0, &otherwise}};
  const auto add = [&](std::uint32_t first, const CallFilter::Answer& answer) {
    if (ranges.back().first == first) ranges.pop_back();
    const bool goes_on = !ranges.empty() && answer.when.empty() &&
                         ranges.back().answer->when.empty() &&
                         ranges.back().answer->always == answer.always;
    if (!goes_on) ranges.push_back({first, &answer});
  };
  for (const auto& [number, answer] : numbers) {
    add(number, *answer);
    add(number + 1, otherwise);
  }
  return ranges;
}

class Tree {
 public:
  Tree(Program& program, std::vector<Range> ranges, std::uint32_t otherwise)
      : program_(program), ranges_(std::move(ranges)), otherwise_(otherwise) {}
  /// Where it starts, with the number loaded.
  std::size_t make() { return make(0, ranges_.size()); }

 private:
  std::size_t make(std::size_t first, std::size_t end) {  // NOLINT(misc-no-recursion): a few levels
    if (end - first == 1) return leaf(*ranges_[first].answer);
    const std::size_t middle = first + (end - first) / 2;
    const std::size_t right = make(middle, end);
    const std::size_t left = make(first, middle);
    return program_.branch(BPF_JGE, ranges_[middle].first, right, left);
  }
  std::size_t leaf(const CallFilter::Answer& answer) {
    std::size_t next = program_.answer(answer.always.value_or(otherwise_));
    for (auto one = answer.when.rbegin(); one != answer.when.rend(); ++one) {
      const auto& [condition, action] = *one;
      // Each goes on to what was added before it.
      program_.branch(BPF_JEQ, condition.value, program_.answer(action), next);
      if (condition.mask != ~std::uint32_t{0}) {
        program_.add(BPF_ALU | BPF_AND | BPF_K, condition.mask);
      }
      static_assert(std::endian::native == std::endian::little);  // the lower half comes first
      const std::size_t place =
          offsetof(seccomp_data, args) + condition.argument * sizeof(std::uint64_t);
      next = program_.add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(place));
    }
    return next;
  }
  Program& program_;
  std::vector<Range> ranges_;
  std::uint32_t otherwise_;
};

}  // namespace

CallAbi own_abi() {
#if defined(__aarch64__)
  return CallAbi::aarch64;
#else
  return CallAbi::x86_64;
#endif
}

std::vector<CallAbi> abis_of(std::string_view architecture) {
  if (architecture == "arm64") return {CallAbi::aarch64, CallAbi::arm};
  return {CallAbi::x86_64, CallAbi::x32, CallAbi::i386};
}

std::optional<std::uint32_t> call_number(CallAbi abi, std::string_view name) {
  if (abi == CallAbi::i386) {
    if (const auto split = number_in(kSplitCalls, name)) return split;
  }
  const int known = ::seccomp_syscall_resolve_name_arch(token_of(abi), std::string(name).c_str());
  if (known >= 0) return static_cast<std::uint32_t>(known);
  if (known != __NR_SCMP_ERROR) return std::nullopt;
  auto number = number_in(kNewCalls, name);
  if (number && abi == CallAbi::x32) *number |= kX32Bit;
  return number;
}

void CallFilter::add_one(std::uint32_t action, std::string_view name) {
  Answer& answer = calls_.try_emplace(std::string(name)).first->second;
  if (!answer.always) answer.always = action;
}

void CallFilter::add_when(std::uint32_t action, const CallCondition& when) {
  Answer& answer = calls_.try_emplace(std::string(when.name)).first->second;
  if (!answer.always) answer.when.emplace_back(when, action);
}

std::string CallFilter::program(std::span<const CallAbi> abis) const {
  std::map<std::uint32_t, Numbers> architectures;
  for (const CallAbi abi : abis) {
    Numbers& numbers = architectures[audit_arch(abi)];
    for (const auto& [name, answer] : calls_) {
      if (const auto number = call_number(abi, name)) numbers.emplace(*number, &answer);
    }
  }
  const Answer rest{{}, otherwise_};
  Program program;
  std::vector<std::pair<std::uint32_t, std::size_t>> starts;
  for (const auto& [architecture, numbers] : architectures) {
    program.go_on_at(Tree{program, ranges_of(numbers, rest), otherwise_}.make());
    starts.emplace_back(architecture,
                        program.add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  }
  std::size_t next = program.answer(otherwise_);
  for (const auto& [architecture, start] : starts) {
    next = program.branch(BPF_JEQ, architecture, start, next);
  }
  program.go_on_at(next);
  program.add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  return std::move(program).bytes();
}

}  // namespace mlenv
