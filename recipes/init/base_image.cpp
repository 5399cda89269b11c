// What the name of a base image says, by the conventions of those that are used most (their pages
// on Docker Hub; read in November 2026).
#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include <fmt/core.h>

#include "recipes/base_image.hpp"
#include "recipes/compat/framework_cuda.hpp"
#include "recipes/distribution.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct ImageWords {
  std::string repository;
  std::vector<std::string> tag;  ///< its parts between dashes
};

ImageWords words_of(std::string_view image) {
  image = image.substr(0, image.find('@'));
  for (const std::string_view prefix :
       {"docker.io/", "index.docker.io/", "library/", "public.ecr.aws/docker/library/"}) {
    if (image.starts_with(prefix)) image.remove_prefix(prefix.size());
  }
  const std::size_t slash = image.rfind('/');
  const std::size_t colon = image.find(':', slash == std::string_view::npos ? 0 : slash);
  ImageWords words{std::string(image.substr(0, colon)), {}};
  if (colon == std::string_view::npos) return words;
  for (std::string_view tag = image.substr(colon + 1); !tag.empty();) {
    const std::size_t dash = tag.find('-');
    words.tag.emplace_back(tag.substr(0, dash));
    tag.remove_prefix(dash == std::string_view::npos ? tag.size() : dash + 1);
  }
  return words;
}

bool tag_has(const ImageWords& words, std::string_view part) {
  for (const std::string& one : words.tag) {
    if (one == part) return true;
  }
  return false;
}

bool is_tag_version(std::string_view text) {
  return !text.empty() && is_digit(text.front()) && text.find('.') != std::string_view::npos;
}

/// The release that a part of the tag names: `bookworm`, `jammy`, `ubuntu22.04`.
void suite_from(const ImageWords& words, std::string_view distribution, Draft& draft) {
  for (std::string_view part : words.tag) {
    std::string base = base_of_suite(distribution, part);
    if (part.starts_with(distribution)) {
      base = base_of_number(distribution, part.substr(distribution.size()));
    }
    if (!base.empty()) draft.base = std::move(base);
  }
}

constexpr std::string_view kOtherRelease =
    "no release that a base is made of here: the base is another one, whose packages have other "
    "versions";

/// A release in the tag that no base can be made of: `ubuntu18.04`, `centos7`, `ubi8`.
void tell_other_release(const SourcePlace& place, const ImageWords& words, Conversion& to) {
  if (!to.draft.base.empty()) return;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kReleases = {
      {{"ubuntu", "Ubuntu"},
       {"debian", "Debian"},
       {"centos", "CentOS"},
       {"rockylinux", "Rocky Linux"},
       {"ubi", "Red Hat's"},
       {"almalinux", "AlmaLinux"},
       {"opensuse", "openSUSE"},
       {"cbl-mariner", "Azure Linux"}}};
  constexpr std::array<std::string_view, 8> kOldNames = {"trusty", "xenial",  "bionic", "wheezy",
                                                         "jessie", "stretch", "buster", "centos"};
  for (const std::string_view part : words.tag) {
    if (is_among(kOldNames, part)) return to.leave_out(place, part, kOtherRelease);
    for (const auto& [begin, name] : kReleases) {
      const std::string_view number = part.substr(std::min(begin.size(), part.size()));
      if (!part.starts_with(begin) || number.empty() || !is_digit(number.front())) continue;
      return to.leave_out(place, part, fmt::format("{} {}: {}", name, number, kOtherRelease));
    }
  }
}

void distribution(const SourcePlace& place, const ImageWords& words, std::string_view image,
                  Conversion& to) {
  const std::string& id = words.repository;
  suite_from(words, id, to.draft);
  if (to.draft.base.empty() && !words.tag.empty()) {
    to.draft.base = base_of_number(id, words.tag.front());
  }
  if (to.draft.base.empty()) {
    to.leave_out(
        place, image,
        fmt::format("it names no release of {} that mlenv knows", find_distribution(id)->name));
  }
}

void bring(const SourcePlace& place, std::initializer_list<std::string_view> packages,
           Conversion& to) {
  for (const std::string_view one : packages) to.system_package(place, one);
}

/// What nearly every image has, and programs count on: certificates of servers, names of protocols,
/// time zones.
void bring_usual(const SourcePlace& place, Conversion& to) {
  bring(place, {"ca-certificates", "netbase", "tzdata"}, to);
}

/// The images with no `slim` in their tag are made for building.
void bring_compilers(const SourcePlace& place, std::string_view image, Conversion& to) {
  bring(place, {"build-essential", "python3-dev", "git", "curl", "wget"}, to);
  to.note(place, image,
          "it holds a compiler, git, curl and wget, so `system` has them: leave out what your "
          "programs do not use");
}

/// The first part of the tag that is a version, also behind a word: `python3.12`, `1-3.11`.
std::string python_of_tag(const ImageWords& words) {
  for (std::string_view part : words.tag) {
    if (part.starts_with("python")) part.remove_prefix(6);
    if (part.starts_with("py")) part.remove_prefix(2);
    if (is_tag_version(part) && part.starts_with("3.")) return std::string(part);
  }
  return {};
}

void python(const SourcePlace& place, const ImageWords& words, std::string_view image,
            Conversion& to) {
  to.python_has_headers();
  bring_usual(place, to);
  const bool small = tag_has(words, "slim") || tag_has(words, "alpine");
  if (!small && (words.repository == "python" || says(words.repository, "devcontainers"))) {
    bring_compilers(place, image, to);
  }
  for (const std::string& part : words.tag) {
    if (part.starts_with("alpine")) {
      to.note(place, image, "Alpine's programs and packages are Debian's here");
      break;
    }
  }
  const std::string version = python_of_tag(words);
  if (!version.empty()) to.python_version(place, version);
  Draft& draft = to.draft;
  suite_from(words, "debian", draft);
  if (!draft.python.empty() && python_of_base(draft.base) != draft.python) draft.base.clear();
}

/// `continuumio/miniconda3`, `condaforge/miniforge3`, `mambaorg/micromamba`
bool is_conda_image(std::string_view repository) {
  for (const std::string_view one : {"miniconda3", "anaconda3", "miniforge3", "mambaforge",
                                     "micromamba", "anaconda", "miniconda", "miniforge"}) {
    if (repository.ends_with(one)) return true;
  }
  return false;
}

void of_conda(const SourcePlace& place, const ImageWords& /*words*/, std::string_view image,
              Conversion& to) {
  to.python_has_headers();
  bring_usual(place, to);
  bring(place, {"git"}, to);
  to.draft.base_note.clear();
  to.leave_out(place, image, "conda itself: packages are Python's and Debian's here");
}

/// Jupyter's images, by what each adds to the one before it (their documentation, "Selecting an
/// Image").
void jupyter(const SourcePlace& place, const ImageWords& words, std::string_view image,
             Conversion& to) {
  to.python_has_headers();
  bring_usual(place, to);
  const std::string name = words.repository.substr(words.repository.rfind('/') + 1);
  const auto add = [&](std::initializer_list<std::string_view> packages) {
    for (const std::string_view one : packages) to.python_package(place, one);
  };
  if (name != "docker-stacks-foundation") add({"jupyterlab", "notebook"});
  if (name != "docker-stacks-foundation" && name != "base-notebook") {
    bring(place, {"git", "curl", "nano", "unzip"}, to);
  }
  if (name != "docker-stacks-foundation" && name != "base-notebook" && name != "minimal-notebook") {
    add({"pandas", "numpy", "scipy", "matplotlib", "scikit-learn", "scikit-image", "seaborn",
         "statsmodels", "sympy", "sqlalchemy", "h5py", "ipywidgets", "bokeh", "cloudpickle", "dask",
         "openpyxl", "tables", "numba"});
    bring(place, {"build-essential", "ffmpeg"}, to);
  }
  if (name == "tensorflow-notebook") to.python_package(place, "tensorflow");
  if (name == "pytorch-notebook") add({"torch", "torchvision", "torchaudio"});
  if (name.find("spark") != std::string::npos) {
    add({"pyspark", "pyarrow"});
    bring(place, {"default-jre-headless"}, to);
  }
  const std::string version = python_of_tag(words);
  if (!version.empty()) to.python_version(place, version);
  if (to.draft.workdir.empty()) to.draft.workdir = "/home/jovyan";
  to.draft.command = {"jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "--allow-root"};
  to.note(place, image,
          "the packages that this image is known for: leave out what is not used; R and Julia are "
          "not among them");
}

/// `huggingface/transformers-pytorch-gpu:4.41.2`
void hugging_face(const SourcePlace& place, const ImageWords& words, std::string_view image,
                  Conversion& to) {
  const std::string name = words.repository.substr(words.repository.rfind('/') + 1);
  if (!name.starts_with("transformers")) {
    return to.leave_out(place, image, "what this image holds is not known by its name");
  }
  bring_usual(place, to);
  bring(place, {"git", "ffmpeg"}, to);
  const bool versioned = !words.tag.empty() && is_tag_version(words.tag.front());
  to.python_package(place, versioned ? "transformers==" + words.tag.front() : "transformers");
  const bool flow = name.find("tensorflow") != std::string::npos;
  to.python_package(place, flow ? "tensorflow" : "torch");
  if (!flow) {
    for (const std::string_view one : {"torchvision", "torchaudio"}) to.python_package(place, one);
  }
  for (const std::string_view one : {"accelerate", "datasets"}) to.python_package(place, one);
  to.note(place, image, "the packages that this image is known for: leave out what is not used");
}

/// `pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime`, `tensorflow/tensorflow:2.15.0-gpu`
void framework(const SourcePlace& place, const ImageWords& words, std::string_view image,
               Conversion& to) {
  to.python_has_headers();
  const bool torch = words.repository.starts_with("pytorch/");
  std::string requirement = torch ? "torch" : "tensorflow";
  if (!words.tag.empty() && is_tag_version(words.tag.front()))
    requirement += "==" + words.tag.front();
  to.python_package(place, requirement);
  for (const std::string& part : words.tag) {
    if (torch && part.starts_with("cuda")) to.cuda_release(place, part.substr(4));
  }
  bring_usual(place, to);
  if (torch) {
    for (const std::string_view one : {"torchvision", "torchaudio"}) to.python_package(place, one);
  }
  if (tag_has(words, "devel")) {
    bring(place, {"build-essential", "python3-dev", "git"}, to);
    to.cuda_compiler(place, image);
  }
  if (!torch && tag_has(words, "gpu")) {
    const std::string& version = words.tag.front();
    const std::string_view cuda = cuda_of_tensorflow(is_tag_version(version) ? "==" + version : "");
    if (!cuda.empty()) {
      to.cuda_release(place, cuda);
    } else if (is_tag_version(version)) {
      to.leave_out(place, image,
                   "its CUDA, which no wheels bring for this TensorFlow: without it the processor "
                   "is used");
    }
  }
  if (tag_has(words, "jupyter")) to.python_package(place, "jupyterlab");
  to.leave_out(place, image, "what else this image holds, beside the framework");
}

/// AMD's: `rocm/pytorch:rocm6.0_ubuntu22.04_py3.10_pytorch_2.1.1`
void of_rocm(const SourcePlace& place, const ImageWords& words, std::string_view image,
             Conversion& to) {
  suite_from(words, "ubuntu", to.draft);
  for (const std::string& part : words.tag) {
    if (to.draft.base.empty()) to.draft.base = base_of_number("ubuntu", part);
  }
  tell_other_release(place, words, to);
  if (const std::string version = python_of_tag(words); !version.empty()) {
    to.python_version(place, version);
  }
  if (words.repository.ends_with("/pytorch")) to.python_package(place, "torch");
  to.leave_out(place, image,
               "ROCm: builds for AMD's GPUs come from an index of their own, to be named in "
               "`sources`, and its libraries from AMD's Debian archive");
}

/// `devcontainers/base:ubuntu-22.04`, `:jammy`, `:1-bookworm`, `:debian12`
void devcontainer_base(const SourcePlace& place, const ImageWords& words,
                       std::string_view /*image*/, Conversion& to) {
  Draft& draft = to.draft;
  for (const std::string_view id : {"debian", "ubuntu"}) {
    suite_from(words, id, draft);
    for (const std::string& part : words.tag) {
      if (draft.base.empty() && tag_has(words, id)) draft.base = base_of_number(id, part);
    }
  }
  tell_other_release(place, words, to);
  if (draft.base.empty() && tag_has(words, "ubuntu")) {
    draft.base = "ubuntu:jammy";
    const auto number = std::find_if(words.tag.begin(), words.tag.end(), is_tag_version);
    if (number != words.tag.end()) to.leave_out(place, "Ubuntu " + *number, kOtherRelease);
  }
  bring_usual(place, to);
  bring(place, {"git", "curl"}, to);
}

/// `nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04`
void of_cuda(const SourcePlace& place, const ImageWords& words, std::string_view image,
             Conversion& to) {
  if (!words.tag.empty()) to.cuda_release(place, words.tag.front());
  suite_from(words, "ubuntu", to.draft);
  tell_other_release(place, words, to);
  if (tag_has(words, "devel")) {
    bring(place, {"build-essential"}, to);
    to.cuda_compiler(place, image);
  }
  to.leave_out(place, image,
               "CUDA comes with the framework's wheels, and what else this image has does not");
}

/// Of somebody's image on PyTorch or Python, as `lab/pytorch:2.0.1-cuda11.8`, `web:python3.8`.
void what_tag_says(const SourcePlace& place, const ImageWords& words, Conversion& to) {
  if (const std::string version = python_of_tag(words); version.starts_with("3.")) {
    if (tag_has(words, "python" + version) || tag_has(words, "py" + version)) {
      to.python_version(place, version);
    }
  }
  const bool torch = words.repository.ends_with("/pytorch");
  if (!torch || words.tag.empty() || !is_tag_version(words.tag.front())) return;
  to.python_package(place, "torch==" + words.tag.front());
  for (const std::string& part : words.tag) {
    if (part.starts_with("cuda")) to.cuda_release(place, part.substr(4));
  }
}

/// `library/redis:7` of `redis:7`, which has no host, or Docker Hub's; empty: another registry's,
/// or no name of an image.
std::string name_on_hub(std::string_view image) {
  for (const std::string_view host : {"docker.io/", "index.docker.io/"}) {
    if (image.starts_with(host)) image.remove_prefix(host.size());
  }
  const std::string_view first = image.substr(0, image.find('/'));
  const bool alone = first.size() == image.size();
  if (image.empty() ||
      (!alone && (first.find_first_of(".:") != std::string_view::npos || first == "localhost"))) {
    return {};
  }
  const std::string_view last = image.substr(image.rfind('/') + 1);
  const bool tagged = last.find_first_of(":@") != std::string_view::npos;
  std::string name = fmt::format("{}{}{}", alone ? "library/" : "", image, tagged ? "" : ":latest");
  return std::holds_alternative<BaseImage>(parse_base_image("host.example/" + name)) ? name : "";
}

/// Any other is a base as it is, where its registry is known.
void other_image(const SourcePlace& place, const ImageWords& words, std::string_view image,
                 Conversion& to) {
  to.draft.base_note.clear();
  if (image == "scratch") return to.leave_out(place, image, "an image of nothing");
  if (const std::string hub = name_on_hub(image); !hub.empty()) {
    what_tag_says(place, words, to);
    return to.leave_out(
        place, image,
        fmt::format("an image of Docker Hub, and there is no default registry: `base: HOST/{}` "
                    "takes it, with its registry's host; as it is, the base is a plain one, "
                    "without what this image holds",
                    hub));
  }
  const auto read = parse_base_image(image);
  if (const auto* mistake = std::get_if<std::string>(&read)) {
    what_tag_says(place, words, to);
    return to.leave_out(place, image, *mistake);
  }
  to.draft.base = image;
}

using ImageConverter = void (*)(const SourcePlace&, const ImageWords&, std::string_view,
                                Conversion&);

/// By the repository's name.
ImageConverter converter_of(std::string_view name) {
  const auto begins = [&](std::string_view begin) { return name.starts_with(begin); };
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  if (find_distribution(name) != nullptr) return distribution;
  if (name == "python" || name == "ghcr.io/astral-sh/uv" || name == "astral/uv" ||
      ends("devcontainers/python")) {
    return python;
  }
  if (is_conda_image(name)) return of_conda;
  if (begins("jupyter/") || begins("quay.io/jupyter/")) return jupyter;
  if (begins("huggingface/")) return hugging_face;
  if (begins("rocm/")) return of_rocm;
  if (ends("devcontainers/base")) return devcontainer_base;
  if (name == "pytorch/pytorch" || name == "tensorflow/tensorflow") return framework;
  if (ends("nvidia/cuda")) return of_cuda;
  return other_image;
}

}  // namespace

void convert_base_image(const SourcePlace& place, std::string_view image, Conversion& to) {
  const ImageWords words = words_of(image);
  to.draft.base_note = fmt::format("In the place of `{}`.", shown_text(image));
  converter_of(words.repository)(place, words, image, to);
}

ImageContents contents_of_image(std::string_view image) {
  const ImageConverter converter = converter_of(words_of(image).repository);
  if (converter == other_image) {
    return image == "scratch" ? ImageContents::none : ImageContents::unknown;
  }
  if (converter == distribution || converter == devcontainer_base) return ImageContents::none;
  const bool tools = converter == python || converter == of_conda || converter == of_cuda;
  return tools ? ImageContents::tools : ImageContents::packages;
}

void convert_copied_image(const SourcePlace& place, std::string_view image, Conversion& to) {
  const Draft before = to.draft;
  const ImageWords words = words_of(image);
  converter_of(words.repository)(place, words, image, to);
  Draft& draft = to.draft;
  draft.base = before.base;
  draft.base_note = before.base_note;
  draft.system = before.system;
  draft.workdir = before.workdir;
  draft.command = before.command;
  const bool other = !draft.python.empty() && is_package_base(draft.base) &&
                     python_of_base(draft.base) != draft.python;
  if (other) draft.base.clear();
}

}  // namespace mlenv
