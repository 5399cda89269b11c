#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "recipes/compat/cuda_releases.hpp"
#include "recipes/compat/cuda_update.hpp"
#include "recipes/resolve/versions.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

CudaTable built_in() { return parse_cuda_table(built_in_cuda_data(), "cuda.toml"); }

/// A whole table of one release; `row` is what is said of it.
std::string table_with(const std::string& row, const std::string& date = "2026-11-21") {
  return "format = 1\ndate = \"" + date + "\"\nreleases = [\n" + row +
         "\n]\n[sources]\nnotes = \"release notes\"\n";
}
const std::string kWhole =
    R"({release = "12.6", driver = "560.28.03", updates = ["560.35.03"], source = "notes", read = "2026-11-20"})";

std::string fault_in(const std::string& text) {
  const Error error = error_of([&] { parse_cuda_table(text, "cuda.toml"); });
  EXPECT_EQ(error.code(), "cuda-data-invalid");
  const std::string& line = error.frames().front();
  return line.substr(0, line.find('\n'));
}

TEST(CudaTable, TheBuiltInOneIsWhole) {
  const CudaTable table = built_in();
  EXPECT_TRUE(is_date(table.date));
  EXPECT_EQ(table.releases.size(), 27U);
  EXPECT_EQ(table.floors.size(), 3U);
  EXPECT_EQ(table.architectures.size(), gpu_architectures().size());
  EXPECT_EQ(table.builds.size(), 43U);
  for (const CudaTable::Release& one : table.releases) {
    EXPECT_FALSE(cuda_driver_floor(one.release).empty()) << one.release;
  }
  for (const std::string_view name : gpu_architectures()) {
    EXPECT_TRUE(std::any_of(table.architectures.begin(), table.architectures.end(),
                            [&](const auto& row) { return row.code.name() == name; }))
        << name;
  }
  // Every source is somebody's.
  std::map<std::string, int> used;
  for (const auto& row : table.releases) ++used[row.origin.source];
  for (const auto& row : table.floors) ++used[row.origin.source];
  for (const auto& row : table.architectures) ++used[row.origin.source];
  for (const auto& row : table.builds) ++used[row.origin.source];
  EXPECT_EQ(used.size(), table.sources.size());
}

TEST(CudaTable, HasTheDriversOfUpdates) {
  const auto releases = cuda_releases();
  const auto found = std::find_if(releases.begin(), releases.end(),
                                  [](const CudaRelease& one) { return one.release == "12.6"; });
  ASSERT_NE(found, releases.end());
  EXPECT_EQ(found->updates, (std::vector<std::string_view>{"560.35.03", "560.35.05"}));
}

TEST(CudaTable, IsReadBackAsItWasWritten) {
  CudaTable table = built_in();
  const CudaTable again = parse_cuda_table(render_cuda_releases(table), "cuda.toml");
  EXPECT_EQ(again.releases, table.releases);
  EXPECT_EQ(again.sources, table.sources);
  EXPECT_EQ(again.date, table.date);
}

TEST(CudaTable, WhatIsNotWholeIsToldWithItsPlace) {
  EXPECT_EQ(parse_cuda_table(table_with(kWhole), "cuda.toml").releases.size(), 1U);
  struct Case {
    std::string from;
    std::string to;
    std::string said;
  };
  const std::vector<Case> cases = {
      {"\"12.6\"", "\"12\"", "`release` is a toolkit's"},
      {"\"560.28.03\"", "\"56\"", "`driver` is a driver's version"},
      {"[\"560.35.03\"]", "[\"560.28.03\"]", "updates' drivers stand oldest first"},
      {"[\"560.35.03\"]", "[\"new\"]", "no driver's version"},
      {"\"notes\"", "\"hearsay\"", "none of `sources`"},
      {"2026-11-20", "2026-02-30", "a date"},
      {"2026-11-20", "2026-13", "a date"},
      {"2026-11-20", "2026-11-22", "newer than `date`"},
      {", read = \"2026-11-20\"", "", "`read`"},
      {"read =", "seen =", "unknown"},
      {"\"2026-11-20\"}", "\"2026-11-20\", standing = \"rumour\"}", "`standing`"},
      {"\"2026-11-20\"}", "\"2026-11-20\", standing = \"conflicting\"}", "`conflict`"},
  };
  for (const Case& one : cases) {
    std::string row = kWhole;
    row.replace(row.find(one.from), one.from.size(), one.to);
    const std::string said = fault_in(table_with(row));
    EXPECT_NE(said.find(one.said), std::string::npos) << said;
    EXPECT_TRUE(said.starts_with("cuda.toml:4:")) << said;
  }
  fault_in(table_with(kWhole + ",\n" + kWhole));
  fault_in(table_with(""));
  fault_in(table_with("5"));
  fault_in(table_with(kWhole, "yesterday"));
  fault_in("format = 2\n");
  std::string cut = table_with(kWhole);
  for (std::size_t length = 0; length + 1 < cut.size(); length += 7) {
    EXPECT_THROW(parse_cuda_table(cut.substr(0, length), "cuda.toml"), Error) << length;
  }
}

TEST(CudaTable, AnUpdateOnlyAddsToIt) {
  const CudaTable known = built_in();
  EXPECT_EQ(fault_of_update(known, known), "");
  CudaTable newer = known;
  newer.date = "2027-01-01";
  newer.releases.insert(newer.releases.begin(), {"13.6", "625.10.01", {}, {}});
  EXPECT_EQ(fault_of_update(known, newer), "");
  newer.date = "2026-01-01";
  EXPECT_NE(fault_of_update(known, newer), "");
  newer = known;
  newer.releases.pop_back();
  EXPECT_EQ(fault_of_update(known, newer), "it lacks CUDA 10.0");
  newer = known;
  newer.releases.front().driver = "620.70.07";
  EXPECT_NE(fault_of_update(known, newer).find("620.70.07"), std::string::npos);
  newer = known;
  newer.releases.insert(newer.releases.begin() + 8, {"12.7", "565.57.01", {}, {}});
  EXPECT_NE(fault_of_update(known, newer).find("12.7"), std::string::npos);
}

Redistrib file_of(const std::string& version, const std::string& driver) {
  return parse_redistrib(R"({"release_date": "2026-12-01", "release_label": ")" + version +
                             R"(", "nvidia_driver": {"version": ")" + driver +
                             R"(", "linux-x86_64": {"relative_path": "x"}}})",
                         "redistrib_" + version + ".json");
}

TEST(CudaIndex, ItsFilesAreFoundInListings) {
  EXPECT_EQ(redistrib_names(R"(<a href="redistrib_13.10.0.json">redistrib_13.10.0.json</a>
<a href='redistrib_13.9.1.json'>x</a> redistrib_11.4.0.json redistrib_10.2.0.json
redistrib_feature_13.0.json redistrib_1.json redistrib_..json redistrib_99999.0.0.json
<a href="../redistrib_12.0.0.json.asc)",
                            "11.0"),
            (std::vector<std::string>{"redistrib_11.4.0.json", "redistrib_12.0.0.json",
                                      "redistrib_13.9.1.json", "redistrib_13.10.0.json"}));
  EXPECT_TRUE(redistrib_names("redistrib_", "11.0").empty());
}

TEST(CudaIndex, ListingsOfAnyShapeAreReadOnce) {
  constexpr std::size_t kTimes = 400'000;  // four megabytes, as large as one may be
  std::string listing;
  for (std::size_t i = 0; i < kTimes; ++i) listing += "redistrib_";
  listing += "13.0.0.json redistrib_999.999.999.json";
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(redistrib_names(listing, "11.0"),
            (std::vector<std::string>{"redistrib_13.0.0.json", "redistrib_999.999.999.json"}));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

TEST(CudaIndex, FilesThatAreNoneAreRefused) {
  EXPECT_EQ(file_of("13.6.1", "625.10.01").driver, "625.10.01");
  EXPECT_EQ(file_of("13.6.1", "625.10.01").update, 1U);
  EXPECT_EQ(parse_redistrib("{}", "redistrib_13.6.0.json").driver, "");
  EXPECT_EQ(parse_redistrib(R"({"nvidia_driver": {"version": "1", "windows-x86_64": {}}})",
                            "redistrib_13.6.0.json")
                .driver,
            "");
  for (const char* text : {"", "[]", "{", "<html>", R"({"release_label": "13.5.0"})",
                           R"({"release_label": 13})", R"({"release_date": "soon"})",
                           R"({"nvidia_driver": []})", R"({"nvidia_driver": {"linux-x86_64": {}}})",
                           R"({"nvidia_driver": {"version": "x", "linux-x86_64": {}}})",
                           R"({"nvidia_driver": {"version": 625, "linux-x86_64": {}}})"}) {
    EXPECT_EQ(code_of([&] { parse_redistrib(text, "redistrib_13.6.0.json"); }), "redistrib-invalid")
        << text;
  }
  EXPECT_EQ(code_of([] { parse_redistrib("{}", "redistrib.json"); }), "redistrib-invalid");
  EXPECT_EQ(code_of([] { parse_redistrib(std::string(100'000, '['), "redistrib_13.6.0.json"); }),
            "redistrib-invalid");
}

TEST(CudaIndex, ReleasesAndUpdatesAreAdded) {
  const CudaTable known = built_in();
  const CudaUpdate update =
      updated_cuda_table(known,
                         {file_of("13.6.1", "625.20.02"), file_of("13.6.0", "625.10.01"),
                          file_of("12.6.3", "560.35.05"), file_of("13.5.1", "620.80.01")},
                         "2026-12-02");
  EXPECT_TRUE(update.changed);
  EXPECT_EQ(update.added, std::vector<std::string>{"13.6"});
  EXPECT_EQ(update.extended, std::vector<std::string>{"13.5"});
  EXPECT_TRUE(update.left_out.empty());
  EXPECT_EQ(update.table.releases.front().driver, "625.10.01");
  EXPECT_EQ(update.table.releases.front().updates, std::vector<std::string>{"625.20.02"});
  EXPECT_EQ(update.table.releases.front().origin.read, "2026-12-02");
  EXPECT_EQ(fault_of_update(known, update.table), "");
  const CudaTable again = parse_cuda_table(render_cuda_releases(update.table), "cuda.toml");
  EXPECT_EQ(again.releases, update.table.releases);
  EXPECT_FALSE(updated_cuda_table(again, {file_of("13.5.1", "620.80.01")}, "2026-12-03").changed);
}

TEST(CudaIndex, WhatContradictsIsKeptInWordsAlone) {
  const CudaTable known = built_in();
  const CudaUpdate update =
      updated_cuda_table(known,
                         {file_of("12.8.0", "570.86.10"), file_of("12.6.3", "999.10.01"),
                          file_of("12.7.0", "565.57.01"), file_of("14.0.0", "640.10.01")},
                         "2026-12-02");
  EXPECT_EQ(update.left_out.size(), 4U);
  EXPECT_TRUE(update.added.empty());
  EXPECT_TRUE(update.extended.empty());
  ASSERT_EQ(update.table.releases.size(), known.releases.size());
  for (std::size_t i = 0; i < known.releases.size(); ++i) {
    EXPECT_EQ(update.table.releases[i].driver, known.releases[i].driver);
    EXPECT_EQ(update.table.releases[i].updates, known.releases[i].updates);
  }
  const auto& row = update.table.releases[7];
  EXPECT_EQ(row.release, "12.8");
  EXPECT_EQ(row.origin.standing, "conflicting");
  EXPECT_EQ(row.origin.conflict, "NVIDIA's index has 570.86.10 for 12.8.0");
}

TEST(CudaIndex, ReleasesWhoseDriversCannotBeAreRefused) {
  for (const char* driver : {"610.10.01", "620.70.06", "999.10.01", "9999"}) {
    EXPECT_EQ(
        code_of([&] { updated_cuda_table(built_in(), {file_of("13.6.0", driver)}, "2026-12-02"); }),
        "redistrib-invalid")
        << driver;
  }
}

}  // namespace
}  // namespace mlenv
