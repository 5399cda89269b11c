#include "recipes/base_image.hpp"

#include <array>

#include "base/error.hpp"

namespace mlenv {
namespace {

struct TypeName {
  std::string_view theirs;
  std::string_view oci;
};
constexpr std::string_view kTar = "application/vnd.oci.image.layer.v1.tar";
constexpr std::string_view kGzip = kLayerGzipType;
constexpr std::string_view kZstd = "application/vnd.oci.image.layer.v1.tar+zstd";
constexpr std::array<TypeName, 6> kTypes{
    {{kTar, kTar},
     {kGzip, kGzip},
     {kZstd, kZstd},
     {"application/vnd.docker.image.rootfs.diff.tar", kTar},
     {"application/vnd.docker.image.rootfs.diff.tar.gzip", kGzip},
     {"application/vnd.docker.image.rootfs.diff.tar.zstd", kZstd}}};

}  // namespace

std::variant<BaseImage, std::string> parse_base_image(std::string_view text) {
  if (std::optional<ArchivedImage> files = ArchivedImage::parse(text)) {
    if (files->path.empty()) {
      return fmt::format("`{}` names no {}", text,
                         files->format == Output::Format::oci ? "folder" : "file");
    }
    return BaseImage{*std::move(files)};
  }
  try {
    Reference reference = Reference::parse(text);
    if (!reference.host().empty()) return BaseImage{std::move(reference)};
    return fmt::format(
        "`{}` is neither `debian:SUITE` nor an image with its registry; there is no "
        "default registry: write its host in front, as in `HOST/{}`",
        text, text);
  } catch (const Error& error) {
    std::string message = error.frames().front();
    for (std::size_t i = 1; i < error.frames().size(); ++i) message += ": " + error.frames()[i];
    if (!error.hint().empty()) message += "; " + error.hint();
    return message;
  }
}

std::optional<std::string> oci_layer_type(std::string_view media_type) {
  for (const TypeName& type : kTypes) {
    if (type.theirs == media_type) return std::string(type.oci);
  }
  return std::nullopt;
}

}  // namespace mlenv
