// Processors and memory of the two hosts.
#include <algorithm>

#include <fmt/core.h>

#include "recipes/text.hpp"
#include "runner/changes/rules.hpp"

namespace mlenv::changes {
namespace {

using Flags = std::vector<std::string>;

Flags flags_only_in(const Flags& some, const Flags& others) {
  Flags out;
  std::set_difference(some.begin(), some.end(), others.begin(), others.end(),
                      std::back_inserter(out));
  return out;
}

bool has_wide(const Flags& flags) {
  return std::any_of(flags.begin(), flags.end(), [](const std::string& flag) {
    return flag.starts_with("avx512") || flag.starts_with("amx");
  });
}

/// True where models differ beside the instructions: told with them.
bool compare_instructions(Compared& here, const CpuFacts& from, const CpuFacts& to) {
  if (!here.know("host cpu.flags", from.flags, to.flags) || *from.flags == *to.flags) return false;
  Flags before = *from.flags;
  Flags after = *to.flags;
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  const auto side = [](const CpuFacts& cpu, const Flags& own) {
    std::string text = cpu.model.value.value_or("unknown processor");
    if (!own.empty()) text += " with " + listed(own, 6);
    return text;
  };
  const Flags gone = flags_only_in(before, after);
  const Flags added = flags_only_in(after, before);
  Said said{side(from, gone), side(to, added)};
  if (has_wide(gone) || has_wide(added)) {
    said.effect =
        "kernels are chosen by them: with AVX-512 or AMX oneDNN, MKL and NumPy compute with "
        "others, "
        "with other sums and speeds; code that was compiled for what is missing dies of SIGILL";
  }
  here.find("cpu-instructions", std::move(said));
  return true;
}

std::string quota_text(const Limit& limit) {
  if (!limit.most) return "no quota";
  constexpr double kThousand = 1000;
  return fmt::format("{:.4g} processors", static_cast<double>(*limit.most) / kThousand);
}

bool is_noticed(std::uint64_t from, std::uint64_t to) {
  constexpr double kNoticed = 0.05;  // firmware and the kernel take what they take
  return std::abs(static_cast<double>(to) - static_cast<double>(from)) >
         kNoticed * static_cast<double>(from);
}

void compare_size(Compared& here, std::string_view rule, std::string_view what, const Number& from,
                  const Number& to) {
  if (!here.know(what, from, to) || *from == *to) return;
  Said said{bytes_text(*from), bytes_text(*to)};
  if (*to > *from) said.weight = Weight::note;
  if (!is_noticed(*from, *to)) {
    said.weight = Weight::incidental;
    said.what = what;
  }
  here.find(rule, std::move(said));
}

}  // namespace

void processors(Compared& here) {
  if (here.from_host() == nullptr) return;
  const CpuFacts& from = here.from_host()->cpu;
  const CpuFacts& to = here.to_host()->cpu;
  if (here.know("host system.architecture", here.from_host()->system.architecture,
                here.to_host()->system.architecture) &&
      *here.from_host()->system.architecture != *here.to_host()->system.architecture) {
    return here.find("architecture", {*here.from_host()->system.architecture,
                                      *here.to_host()->system.architecture});
  }
  if (!compare_instructions(here, from, to)) {
    find_other(here, "cpu-model", "host cpu.model", from.model, to.model);
  }
  find_other(here, "cpu-count", "host cpu.usable", from.usable, to.usable);
  if (here.know("host cpu.limit_millicpus", from.limit_millicpus, to.limit_millicpus) &&
      *from.limit_millicpus != *to.limit_millicpus) {
    here.find("cpu-quota", {quota_text(*from.limit_millicpus), quota_text(*to.limit_millicpus)});
  }
}

void memory(Compared& here) {
  if (here.from_host() == nullptr) return;
  const Facts& from = *here.from_host();
  const Facts& to = *here.to_host();
  compare_size(here, "memory-total", "host memory.total_bytes", from.memory.total_bytes,
               to.memory.total_bytes);
  compare_size(here, "swap", "host memory.swap_bytes", from.memory.swap_bytes,
               to.memory.swap_bytes);
  const DiskFacts& before = from.storage.shared_memory;
  const DiskFacts& after = to.storage.shared_memory;
  compare_size(here, "shared-memory", "host storage.shared_memory.size_bytes", before.size_bytes,
               after.size_bytes);
  const auto& limit_before = from.memory.limit_bytes;
  const auto& limit_after = to.memory.limit_bytes;
  if (here.know("host memory.limit_bytes", limit_before, limit_after) &&
      *limit_before != *limit_after) {
    here.find("memory-limit",
              {limit_text(*limit_before), limit_text(*limit_after),
               is_lower(*limit_before, *limit_after) ? Weight::breaks : Weight::note});
  }
  const auto& numa_before = from.memory.numa;
  const auto& numa_after = to.memory.numa;
  if (numa_before && numa_after && numa_before->size() != numa_after->size()) {
    here.find("numa", {std::to_string(numa_before->size()), std::to_string(numa_after->size())});
  }
}

}  // namespace mlenv::changes
