#include "runner/job/job_file.hpp"

#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr const char* kAll = R"(name: bert
image: bert-train
command: [python, train.py, --epochs, 3]
nodes: "2:4"
ranks-per-node: 8
gpus-per-node: 8
strategy: parameter-server
framework: pytorch
roles: {chief: false, servers: 2, evaluator: true, async: true}
interface: ib0
pull-from: r.example/team/x:v1
env: {NCCL_DEBUG: INFO, EMPTY: ""}
mounts: [/shared/data:/data:ro, out:/out]
workdir: /workspace
restarts: 3
rescale-interval: 5m
deadline: 12h
grace: 30s
checkpoints: /shared/bert:/checkpoints
after: [prepare, 20260301-120000-0fa4f1]
deterministic: true
seed: 4294967295
storage: {scratch: /mnt/scratch, home: {path: /nfs/home}}
resources: {memory: 16g, cpus: 2.5, shm: 8g}
)";

JobParts parsed_job(std::string_view text) { return parse_job_file(text, "/jobs/job.yaml"); }

/// What the reader complains of, without the code and the count in front.
std::string job_complaint(std::string_view text) {
  const Error error = error_of([&] { (void)parsed_job(text); });
  EXPECT_EQ(error.code(), "job-invalid");
  EXPECT_EQ(error.kind(), Kind::usage);
  return error.what();
}

TEST(JobFileTest, EveryKey) {
  const Job job = job_of(parsed_job(kAll));
  EXPECT_EQ(job.name, "bert");
  EXPECT_EQ(job.image, "bert-train");
  EXPECT_EQ(job.argv, (std::vector<std::string>{"python", "train.py", "--epochs", "3"}));
  EXPECT_EQ(job.nodes, (NodeCount{2, 4}));
  EXPECT_EQ(job.ranks_per_node, 8U);
  EXPECT_EQ(job.gpus_per_node, 8U);
  EXPECT_EQ(job.strategy, Strategy::parameter_server);
  EXPECT_EQ(job.framework, Framework::torch);
  EXPECT_EQ(job.roles, (ServerRoles{false, 2, true, true}));
  EXPECT_EQ(job.interface, "ib0");
  EXPECT_EQ(job.pull_from, "r.example/team/x:v1");
  EXPECT_EQ(job.env, (std::vector<std::string>{"EMPTY=", "NCCL_DEBUG=INFO"}));
  ASSERT_EQ(job.mounts.size(), 2U);
  EXPECT_EQ(job.mounts[0].source, "/shared/data");
  EXPECT_EQ(job.mounts[0].target, "/data");
  EXPECT_TRUE(job.mounts[0].read_only);
  EXPECT_EQ(job.mounts[1].source, "/jobs/out");  // from the file's folder
  EXPECT_EQ(job.workdir, "/workspace");
  EXPECT_EQ(job.restarts, 3U);
  EXPECT_EQ(job.rescale_interval, 5min);
  EXPECT_EQ(job.deadline, 12h);
  EXPECT_EQ(job.grace, 30s);
  EXPECT_EQ(job.checkpoints->target, "/checkpoints");
  EXPECT_EQ(job.options.limits.memory_bytes, std::uint64_t{16} << 30U);
  EXPECT_EQ(job.options.limits.cpus, 2.5);
  EXPECT_EQ(job.options.shm_bytes, std::uint64_t{8} << 30U);
}

TEST(JobFileTest, RunsThatAreToEndBefore) {
  EXPECT_EQ(parsed_job(kAll).after,
            (std::vector<std::string>{"prepare", "20260301-120000-0fa4f1"}));
}

TEST(JobFileTest, MountsNameStorage) {
  const JobParts parts = parse_job_file(
      "mounts: ['@scratch/bert:/work', '@home:/home/jo:ro']\n"
      "checkpoints: '@scratch/bert/at:/checkpoints'\n"
      "storage: {scratch: /mnt/scratch}\n",
      "/jobs/job.yaml", {{"scratch", "/old"}, {"home", "/nfs/home"}});
  ASSERT_EQ(parts.mounts.size(), 2U);
  EXPECT_EQ(parts.mounts[0].source, "/mnt/scratch/bert");
  EXPECT_EQ(parts.mounts[0].storage, "scratch");
  EXPECT_EQ(parts.mounts[1].source, "/nfs/home");
  EXPECT_TRUE(parts.mounts[1].read_only);
  EXPECT_EQ(parts.checkpoints->source, "/mnt/scratch/bert/at");
  EXPECT_EQ(job_complaint("storage: {scratch: /s, home: /h}\nmounts: ['/a:/b', '@scrach/x:/y']\n"),
            "/jobs/job.yaml:2:19: no storage is called `scrach`: there are `home`, `scratch`; did "
            "you mean `@scratch`?\n"
            "    mounts: ['/a:/b', '@scrach/x:/y']\n"
            "                      ^");
}

TEST(JobFileTest, StorageWithoutAValueIsThatOfTheMachine) {
  const JobParts parts =
      parse_job_file("storage:\nmounts: ['@home:/h']\n", "/jobs/job.yaml", {{"home", "/nfs/home"}});
  EXPECT_EQ(parts.mounts.at(0).source, "/nfs/home");
}

TEST(JobFileTest, NoFolderLeadsOutOfStorage) {
  EXPECT_EQ(job_complaint("storage: {data: /s}\nmounts: ['@data/../x:/y']\n"),
            "/jobs/job.yaml:2:10: `@data/../x` is no folder of the storage `data`; `@data/FOLDER`, "
            "without `.`, `..` and empty parts\n"
            "    mounts: ['@data/../x:/y']\n"
            "             ^");
}

TEST(JobFileTest, Determinism) {
  EXPECT_EQ(parsed_job(kAll).deterministic, true);
  EXPECT_EQ(parsed_job(kAll).seed, 4294967295U);
  const JobParts without = parsed_job("deterministic: true");
  EXPECT_EQ(without.deterministic, true);
  EXPECT_FALSE(without.seed);
}

TEST(JobFileTest, KeysWithoutAValueAreAbsent) {
  std::string text;
  for (const std::string_view key : job_keys()) text += fmt::format("{}:\n", key);
  const Job job = job_of(parsed_job(text));
  EXPECT_EQ(job.nodes, NodeCount{});
  EXPECT_EQ(job.strategy, Strategy::allreduce);
  EXPECT_EQ(job.grace, 10s);
  EXPECT_EQ(job.rescale_interval, 30s);
  EXPECT_FALSE(job.roles.async);
  EXPECT_FALSE(job.gpus_per_node);
}

TEST(JobFileTest, AllMistakesAtOnceInTheirPlaces) {
  EXPECT_EQ(
      job_complaint("imagee: x\nnodes: 4:2\nstrategy: all-reduce\nroles: {ps: 1}\nenv: {A: }\n"),
      "/jobs/job.yaml:1:1: unknown key `imagee`; did you mean `image`?\n"
      "    imagee: x\n"
      "    ^\n"
      "/jobs/job.yaml:2:8: `nodes` is how many there are, as in `4`, or the least and the "
      "most, as in `\"2:4\"`\n"
      "    nodes: 4:2\n"
      "           ^\n"
      "/jobs/job.yaml:3:11: unknown strategy `all-reduce`; did you mean `allreduce`?\n"
      "    strategy: all-reduce\n"
      "              ^\n"
      "/jobs/job.yaml:4:9: unknown key `ps`\n"
      "    roles: {ps: 1}\n"
      "            ^\n"
      "/jobs/job.yaml:5:10: `A` has no value; write `\"\"` for an empty one\n"
      "    env: {A: }\n"
      "             ^");
}

TEST(JobFileTest, MistakesOfEachKey) {
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"name: A b", "is not a name for a job"},
      {"name: a/b", "is not a name for a job"},
      {"image: \"\"", "`image` is empty; write one"},
      {"command: python train.py", "`command` is a list"},
      {"command: [\"\", x]", "the first word of `command`"},
      {"nodes: 0", "`nodes` is how many"},
      {"nodes: [2, 4]", "`nodes` is a single text"},
      {"ranks-per-node: 0", "`ranks-per-node` is a whole number from 1 to 4096"},
      {"ranks-per-node: 1.5", "`ranks-per-node` is a whole number"},
      {"gpus-per-node: all", "`gpus-per-node` is a whole number from 0 to 1024"},
      {"strategy: ring", "unknown strategy `ring`; there are `plain`, `allreduce`"},
      {"strategy: alreduce", "did you mean `allreduce`?"},
      {"framework: tensorflo", "did you mean `tensorflow`?"},
      {"framework: mxnet", "unknown framework `mxnet`; there are `none`, `torch`"},
      {"roles: {servers: -1}", "`servers` is a whole number"},
      {"roles: {chief: \"true\"}", "`chief` is `true` or `false`"},
      {"strategy: plain\nroles: {servers: 1}", "`plain` has no roles"},
      {"pull-from: ''", "`pull-from` is empty"},
      {"pull-from: team/x", "names no registry; put its host in front"},
      {"pull-from: https://r.example/x", "write `r.example/x`"},
      {"interface: eth0,eth1:1", "is no name of a network interface"},
      {"interface: abcdefghijklmnop", "is no name of a network interface"},
      {"env: {2A: x}", "is not a name for an environment variable"},
      {"env: {A: [x]}", "the value of `A` is a list"},
      {"env: [A=x]", "`env` is a map"},
      {"mounts: [/data]", "is not a mount; write SOURCE:/TARGET"},
      {"mounts: [/a:b]", "is not a mount"},
      {"mounts: [/a:/proc/x]", "would cover the container's own `/proc`"},
      {"workdir: here", "is not an absolute path"},
      {"restarts: many", "`restarts` is a whole number"},
      {"deadline: soon", "`deadline` is a length of time"},
      {"rescale-interval: often", "`rescale-interval` is a length of time"},
      {"roles: {async: perhaps}", "`async` is `true` or `false`"},
      {"grace: 0", "`grace` is a length of time"},
      {"checkpoints: /a:/b:ro", "checkpoints are written"},
      {"after: prepare", "`after` is a list"},
      {"after: [\"\"]", "`after` names runs"},
      {"deterministic: 7", "`deterministic` is `true` or `false`"},
      {"deterministic: true\nseed: 4294967296", "`seed` is a whole number from 0 to 4294967295"},
      {"deterministic: true\nseed: random", "`seed` is a whole number"},
      {"resources: {memory: 1m}", "`memory 1m` is too little"},
      {"resources: {memory: lots}", "`memory lots` is no size"},
      {"resources: {cpus: 0}", "`cpus 0`"},
      {"resources: {gpus: 8}", "unknown key `gpus`"},
      {"restarts: 1\nrestarts: 2", "`restarts` is given twice"},
      {"", "the job is empty"},
      {"[a]", "a job is a map"}};
  for (const auto& [text, expected] : wrong) {
    const std::string said = job_complaint(text);
    EXPECT_NE(said.find(expected), std::string::npos) << text << "\n" << said;
  }
}

TEST(JobFileTest, AFileThatIsNone) {
  EXPECT_EQ(code_of([] { (void)read_job_file("/nowhere/job.yaml"); }), "absent");
  EXPECT_EQ(code_of([] { (void)read_job_file("/"); }), "job-invalid");
}

TEST(JobFileTest, OptionsComeBeforeTheFile) {
  JobParts options;
  options.nodes = NodeCount{1, 1};
  options.env = {{"NCCL_DEBUG", "WARN"}, {"NEW", "1"}};
  options.mounts = {Mount{"/other", "/data"}};
  options.servers = 5;
  const Job job = job_of(merged(parsed_job(kAll), options));
  EXPECT_EQ(job.nodes, (NodeCount{1, 1}));
  EXPECT_EQ(job.env, (std::vector<std::string>{"EMPTY=", "NCCL_DEBUG=WARN", "NEW=1"}));
  ASSERT_EQ(job.mounts.size(), 2U);
  EXPECT_EQ(job.mounts[0].target, "/out");
  EXPECT_EQ(job.mounts[1].source, "/other");
  EXPECT_EQ(job.roles, (ServerRoles{false, 5, true, true}));
  EXPECT_EQ(job.restarts, 3U);
}

TEST(JobFileTest, TheStrategyFollowsTheRoles) {
  JobParts parts;
  EXPECT_EQ(job_of(parts).strategy, Strategy::allreduce);
  parts.servers = 1;
  EXPECT_EQ(job_of(parts).strategy, Strategy::parameter_server);
  parts.strategy = Strategy::plain;
  EXPECT_EQ(code_of([&] { (void)job_of(parts); }), "bad-job");
}

TEST(JobFileTest, SourcesOfMountsNeedNotBeHere) {
  EXPECT_EQ(mount_of_nodes("/no/such/folder:/data/", "/jobs").target, "/data");
  EXPECT_EQ(mount_of_nodes("../a:/data", "/jobs/x").source, "/jobs/a");
  for (const char* text : {"", "a", ":/b", "a:b", "a:/b:/c", "a:/", "a:/dev"}) {
    EXPECT_EQ(code_of([&] { (void)mount_of_nodes(text, "/"); }), "bad-mount") << text;
  }
}

std::set<std::string> job_schema_keys(const json& properties) {
  std::set<std::string> keys;
  for (const auto& [key, value] : properties.items()) keys.insert(key);
  return keys;
}

std::set<std::string> job_key_set(const std::vector<std::string_view>& keys) {
  return {keys.begin(), keys.end()};
}

TEST(JobSchemaTest, HasTheReadersKeysAndNoOthers) {
  const json properties = json::parse(job_schema())["properties"];
  EXPECT_EQ(job_schema_keys(properties), job_key_set(job_keys()));
  EXPECT_EQ(job_schema_keys(properties["roles"]["properties"]), job_key_set(role_keys()));
  EXPECT_EQ(job_schema_keys(properties["resources"]["properties"]), job_key_set(resource_keys()));
}

/// JSON is YAML too.
TEST(JobSchemaTest, ExamplesAreJobs) {
  const json schema = json::parse(job_schema());
  std::size_t count = 0;
  for (const auto& [key, value] : schema["properties"].items()) {
    EXPECT_TRUE(value.contains("description")) << key;
    for (const json& example : value.value("examples", json::array())) {
      const std::string text = json{{key, example}}.dump();
      // Whose names of storage the machine knows.
      EXPECT_NO_THROW((void)parse_job_file(text, "/jobs/job.yaml", {{"scratch", "/mnt/scratch"}}))
          << text;
      ++count;
    }
  }
  EXPECT_GE(count, job_keys().size());
}

}  // namespace
}  // namespace mlenv::job
