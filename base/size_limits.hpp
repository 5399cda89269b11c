#pragma once
// How many bytes of each kind of text are read (docs/limits.md has the same table). Looked at
// before the first byte where a size is told: a descriptor, Content-Length, stat(2). Above it the
// error is `too-large`.
#include <cstdint>

namespace mlenv::size_limit {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = kKiB * kKiB;
inline constexpr std::uint64_t kGiB = kKiB * kMiB;

// What a registry sends.
inline constexpr std::uint64_t kManifest = 4 * kMiB;  ///< of an image, an index or an artifact
inline constexpr std::uint64_t kImageConfig = 4 * kMiB;
inline constexpr std::uint64_t kTokenAnswer = 1 * kMiB;
inline constexpr std::uint64_t kErrorBody = 64 * kKiB;    ///< what is kept; the rest is not read
inline constexpr std::uint64_t kAnswerHead = 256 * kKiB;  ///< status lines and headers, also 1xx
/// Values in one manifest, index or config: what a parser makes of `[],[]` is many times the text.
inline constexpr std::size_t kImageValues = 100'000;

// An image in files.
inline constexpr std::uint64_t kLayoutIndex = 16 * kMiB;  ///< index.json, manifest.json

// What this machine has about registries and logins.
inline constexpr std::uint64_t kDockerConfig = 4 * kMiB;
inline constexpr std::uint64_t kHelperAnswer = 1 * kMiB;
inline constexpr std::uint64_t kNetrc = 1 * kMiB;
inline constexpr std::uint64_t kMachineConfig = 1 * kMiB;  ///< also hosts.toml, apt sources
inline constexpr std::uint64_t kCertificates = 16 * kMiB;  ///< each file of PEM

// A project's files.
inline constexpr std::uint64_t kRecipe = 1 * kMiB;
inline constexpr std::uint64_t kLock = 8 * kMiB;
inline constexpr std::uint64_t kBuiltRecord = 32 * kMiB;
inline constexpr std::uint64_t kRequirements = 8 * kMiB;  ///< requirements.txt, uv.lock
inline constexpr std::uint64_t kPyproject = 1 * kMiB;     ///< setup.cfg, too
inline constexpr std::uint64_t kIgnoreFile = 1 * kMiB;
inline constexpr std::uint64_t kConverted = 4 * kMiB;  ///< what `mlenv init --from` reads

// What a run or job is given, and what is kept of it.
inline constexpr std::uint64_t kEnvFile = 16 * kMiB;
inline constexpr std::uint64_t kJobFile = 1 * kMiB;  ///< job.yaml, and the file of `--hosts`
inline constexpr std::uint64_t kRunRecord = 64 * kMiB;
inline constexpr std::uint64_t kFacts = 64 * kMiB;  ///< of a host or image
inline constexpr std::uint64_t kComparison = 64 * kMiB;

// Archives of packages.
inline constexpr std::uint64_t kRelease = 16 * kMiB;      ///< InRelease
inline constexpr std::uint64_t kPackagesFile = 1 * kGiB;  ///< an index of packages, unpacked
inline constexpr std::uint64_t kKeyring = 16 * kMiB;
inline constexpr std::uint64_t kWheelMetadata = 16 * kMiB;  ///< METADATA, WHEEL, entry points
inline constexpr std::uint64_t kWheelRecord = 64 * kMiB;    ///< RECORD
inline constexpr std::uint64_t kSourceTree = 16 * kGiB;     ///< a source archive, unpacked
inline constexpr std::uint64_t kSourceEntries = 1'000'000;

/// A download whose size nobody told.
inline constexpr std::uint64_t kUntoldDownload = 64 * kGiB;

}  // namespace mlenv::size_limit
