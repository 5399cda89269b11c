// Steps of a conversion, and what they and builds of packages need.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/distribution.hpp"
#include "recipes/init/build_commands.hpp"
#include "recipes/init/conversion.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/init/step_words.hpp"
#include "recipes/requirement_name.hpp"
#include "recipes/text.hpp"

namespace mlenv {

/// `curl` of a step that a source's image had, and Debian's does not.
void Conversion::bring_programs() {
  if (!is_package_base(draft.base) && !draft.base.empty()) return;
  for (const Step& one : steps_) {
    for (const std::string& package : packages_of_step(one.step.command)) {
      const bool there = std::any_of(
          draft.system.begin(), draft.system.end(),
          [&](const std::string& known) { return parse_debian_wish(known).name == package; });
      if (!there) system_package({draft.source, 0}, package);
    }
  }
}

/// Steps start in `workdir`; where they come from, each started in a folder of its own.
void Conversion::finish_steps() {
  const bool known = !draft.workdir.empty() || is_package_base(draft.base) || draft.base.empty();
  const std::string start = draft.workdir.empty() ? "/workspace" : draft.workdir;
  for (Step& one : steps_) {
    std::string& command = one.step.command;
    if (one.folder == "/" && known && start != "/") {
      command.insert(0, "cd /\n");
    } else if (one.folder.size() > 1 && one.folder != start) {
      const bool made = (start + '/').starts_with(one.folder + '/');
      const std::string folder = shell_quoted(one.folder);
      command.insert(0, made ? fmt::format("cd {}\n", folder)
                             : fmt::format("mkdir -p {0} && cd {0}\n", folder));
    }
    draft.run.push_back(std::move(one.step));
  }
  steps_.clear();
}

void Conversion::finish_headers() {
  constexpr std::array<std::string_view, 5> kCCompilers = {"build-essential", "gcc", "g++", "clang",
                                                           "cc"};
  const auto found = std::find_if(
      draft.system.begin(), draft.system.end(),
      [&](const std::string& one) { return is_among(kCCompilers, parse_debian_wish(one).name); });
  const bool headers = std::any_of(draft.system.begin(), draft.system.end(), [](const auto& one) {
    return parse_debian_wish(one).name == "python3-dev";
  });
  if (!has_headers_ || headers || found == draft.system.end()) return;
  draft.system.insert(found + 1, "python3-dev");
}

/// A package that brings sources for nvcc, or a step that starts a build of such.
bool Conversion::builds_cuda_code() const {
  constexpr std::array<std::string_view, 16> kSources = {
      "flash-attn",     "apex",       "detectron2",    "pytorch3d",     "mmcv-full",
      "deepspeed",      "mamba-ssm",  "causal-conv1d", "natten",        "nvdiffrast",
      "tiny-cuda-nn",   "tinycudann", "gsplat",        "groundingdino", "torch-points-kernels",
      "minkowskiengine"};
  const auto is_source = [&](const std::string& package) {
    const std::string name = name_of_requirement(package);
    return is_among(kSources, name);
  };
  constexpr std::array<std::string_view, 5> kNvccWords = {"nvcc", "build_ext", "CUDA_HOME",
                                                          "TORCH_CUDA_ARCH_LIST", "CUDAARCHS"};
  const auto builds = [&](const DraftStep& step) {
    const auto& command = step.command;
    return std::any_of(kNvccWords.begin(), kNvccWords.end(),
                       [&](std::string_view word) { return says(command, word); });
  };
  return std::any_of(draft.packages.begin(), draft.packages.end(), is_source) ||
         std::any_of(draft.run.begin(), draft.run.end(), builds);
}

/// Python packages of CUDA 13 bring nvcc, those of earlier ones do not.
void Conversion::finish_compiler() {
  if (compiler_.text.empty() || draft.cuda == "cpu" || !builds_cuda_code()) return;
  if (draft.cuda.starts_with("13") && !draft.framework.empty()) {
    draft.nvcc = true;
    note(compiler_.place, compiler_.text,
         "something here builds CUDA code: `libraries` brings its compiler");
    return;
  }
  leave_out(compiler_.place, "nvcc",
            "something here builds CUDA code, and Python packages of CUDA 12 and 11 bring no "
            "compiler: `cuda: \"13.0\"` with `libraries: {nvcc: true}` does; else `base` is an "
            "image that has one, with its registry, as in `HOST/nvidia/cuda:TAG`");
}

}  // namespace mlenv
