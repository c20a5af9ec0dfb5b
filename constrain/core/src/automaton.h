// The lazily built automaton of one grammar over one vocabulary: lexer, parser, memory, and the masks met so far.
//
// One generation of it. All ids below belong to their generation; when its tables outgrow the limit, a new one starts
// from the grammar and live matchers replay what they have read (matcher.h). Not synchronized: CompiledGrammar locks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "context_independent_tokens.h"
#include "grammar.h"
#include "ids.h"
#include "lexeme_ends.h"
#include "limits.h"
#include "mask.h"
#include "mask_signatures.h"
#include "place.h"
#include "stepping.h"
#include "storage.h"
#include "vocabulary.h"

namespace constrain {

class Automaton {
 public:
  Automaton(const Grammar& grammar, const Vocabulary& vocabulary, const Limits& limits = {});

  // To be restored: `visit` must read all that another one's `visit` has written.
  struct ToBeRestored {};
  Automaton(const Grammar& grammar, const Vocabulary& vocabulary, ToBeRestored);
  template <typename Archive>
  void visit(Archive& archive) {  // all but completions, which are found again, and mask parts, which the vocabulary keeps
    archive(stepping_, mask_ids_, text_mask_ids_, masks_, signatures_, mask_bytes_, independent_);
  }

  Stepping& stepping() { return stepping_; }

  const Mask& mask(const Place& place);
  bool has_token(const Place& place, uint32_t token);  // in its mask
  const Mask* known_mask(const Place& place) const;
  struct Wall {  // of the token budget
    uint64_t left;        // tokens, the next one included
    size_t read;          // as above
    uint64_t needed;      // tokens of the plan
    uint32_t plan_token;  // always allowed; Vocabulary::no_token if the plan is to end here
    bool soft;            // close what is open: begin nothing new
  };
  // The limits that left out tokens. Where there are any, all that come to this place get the same mask.
  LimitSet fill(const Mask& mask, const Place& place, std::span<uint32_t> words, const Wall* wall = nullptr);
  bool allows(const Place& place, uint32_t token, const Wall* wall = nullptr);

  // A shortest text that completes `place`; `thorough`: also where searches have taken so long that some short one would do.
  std::string shortest_completion(const Place& place, bool thorough = false);
  void check_finish(bool steps);  // `steps`: also whether the shortest text can be followed within the limits
  std::string counted_completion(const Place& place);  // the one by which masks judge whether a token fits
  std::string forced_bytes(Place& place, size_t limit);  // moves on to where there is a choice
  std::vector<uint32_t> open_starts(std::string_view text, const Place& place);

  // budget.cpp
  void prepare_budget();  // works out what all bounds need; else the first one does
  // Whether the text can surely be completed in at most `tokens`: from `place`, or also after any token of
  // `mask` but those that depend on the text. `read`: bytes of the longest text or value that has been remembered, at most.
  bool surely_fits(const Place& place, size_t read, uint64_t tokens);
  bool any_surely_fits(const Mask& mask, const Place& place, size_t read, uint64_t tokens);
  bool counts_by_rules(const Place& place) { return grammar_.self_delimiting && !text_matters(place); }
  uint64_t tokens_needed(const Place& place);  // of the way to finish that is known; never_fits if none is
  static constexpr uint64_t never_fits = ~uint64_t{0};
  bool fits(const Place& place, const Wall& wall);  // after a token
  struct Narrowed {
    bool by_budget;
    LimitSet limits;  // that were met in telling what fits
  };
  Narrowed fill_within(const Mask& mask, const Place& place, const Wall& wall, std::span<uint32_t> words);

  // lexeme_limits.cpp. `limits`: tokens of one lexeme, by kind of terminal.
  static constexpr uint64_t no_lexeme_limit = ~uint64_t{0};
  bool stays_in_lexeme(LexId lexer, std::string_view bytes);
  uint64_t lexeme_limit(LexId lexer, std::span<const uint64_t> limits) const;  // none if the lexeme cannot go on
  uint64_t lexeme_rest(LexId lexer);  // bytes of a shortest one
  // Takes tokens out of `words` that stay in the lexeme and make its rest no shorter: all, or those that begin a word.
  void keep_nearer(LexId lexer, bool words_only, std::span<uint32_t> words);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  size_t memory_bytes() const;
  uint64_t shared_masks() const { return signatures_.found(); }  // that were found to be those of other places
  void read_masks(size_t most);  // that are stored: now, instead of when they are asked for (storage.cpp)
  static constexpr size_t endless_questions = ~size_t{0};  // that the budget may ask about one mask

  static constexpr size_t max_searched_places = 100'000;

 private:
  void make(Mask& mask, const Place& place);
  std::shared_ptr<const MaskTokens> kept(MaskDraft draft);
  void compute(MaskDraft& mask, const Place& place);
  MatchId match_of(const std::vector<uint32_t>& positions, LexId lexer);
  void add_exits(MaskDraft& mask, const Exits& exits, const Place& next);
  void walk_exits(MaskDraft& mask, std::span<const uint32_t> nodes, const Place& next);
  void walk_suffixes(MaskDraft& mask, uint32_t node, Place place);
  void add_following(MaskDraft& mask, const IndependentTokens& tokens, const Place& next);
  const Bitmask& tokens_beginning(const ByteSet& bytes);
  void leave_to_text(MaskDraft& mask, uint32_t node) const;
  bool surely_goes_on(const Place& place) const;
  bool token_goes_on(uint32_t node, const Place& place);
  void keep_fitting(std::span<const uint32_t> tokens, const Place& place, const Wall& wall, std::span<uint32_t> words);
  void fill_way_to_finish(const Place& place, std::span<uint32_t> words);
  struct LimitedMask {  // of a place, as it was when it was first asked for
    Bitmask words;
    LimitSet limits;
  };
  const LimitedMask* limited_mask(const Place& place) const;
  void keep_limited_mask(const Place& place, LimitSet limits, std::span<const uint32_t> words);
  void settle(MaskDraft& mask) const;
  void add_tokens(std::vector<uint32_t>& to, uint32_t node) const;


  // completion.cpp. Costs are bytes, then edges; `endless` if there is no way.
  struct Segment {
    bool is_rule;
    uint32_t id;  // rule, or expression whose shortest match is meant
    bool fresh = false;  // it must be a text or value that was not read before
  };
  static constexpr uint32_t many = 0xFFFFu;  // fresh texts: and more
  static constexpr uint32_t many_tokens = 0x3FFFFFFFu;  // and more
  static constexpr uint32_t no_path = 0xFFFFFFFFu;
  struct OwnPath {  // a way from a state of a rule to the rule's end, the cheapest unless that takes long to find
    uint64_t cost;
    Segment segment;  // what comes first, if `reads`
    bool reads;
    uint32_t next;  // in paths_, the rest of it; or no_path
  };
  static constexpr uint64_t endless = ~uint64_t{0};
  const OwnPath& own_path(StateId state, MemoryId memory) { return paths_[own_path_id(state, memory)]; }
  uint32_t own_path_id(StateId state, MemoryId memory);
  static uint64_t path_key(StateId state, MemoryId memory) { return (uint64_t{index(state)} << 32) | index(memory); }
  uint64_t find_own_path(StateId state, MemoryId memory, bool keep);
  bool follow_rest_costs(StateId start, MemoryId memory, bool keep);
  void count_search(size_t states, uint32_t rule);
  enum class PathSearch : uint8_t { without_texts, along, with_texts };
  uint64_t search_own_path(StateId start, MemoryId memory, bool keep, PathSearch search, std::vector<uint32_t>& edges);
  uint64_t edge_cost(const Edge& edge);
  void find_rest_costs(uint32_t rule);
  void solve_rules();
  uint64_t item_cost(const Item& item);
  uint64_t origin_cost(OriginId origin);
  uint64_t text_cost(const std::string& text) const { return uint64_t{text.size()} << 16; }
  uint64_t lexeme_cost(ExprId lexeme) { return text_cost(lexer_.expressions().shortest(lexeme)); }
  void complete_item(Item item, std::string& out);
  std::string completion_by_rules(const Place& place);
  std::string completion_by_search(const Place& place);
  std::string completion_by_steps(Place place);
  void expand(const OwnPath& path, std::string& out);
  const Item* next_waiting(const std::vector<Item>& waiting);

  // budget.cpp
  const Bound& set_bound(SetId set, Unit unit);
  Bound find_set_bound(SetId set, Unit unit);
  Bound place_bound(const Place& place, Unit unit);
  Bound inside_bound(const Place& place, Unit unit);
  Bound mask_bound(const Mask& mask, const Place& place, Unit unit);
  Bound item_bound(const Item& item, Unit unit);
  // A way counted in tokens is that on which the text is completed only where the rules alone say how, and nothing on it
  // need be another text than the shortest.
  bool counts_tokens() const { return grammar_.self_delimiting && !grammar_.has_values; }
  Bound lexeme_bound(TermId terminal, Unit unit);
  MemoryId bound_memory(const Item& item);
  bool surely_endless(TermId terminal);
  bool excludes_few(uint32_t rule);
  struct WayOut {  // of an item to the end of its rule, or of an origin to the end of the text
    uint64_t cost;
    uint32_t fresh;
    void add(const WayOut& other) {
      cost = cost == endless || other.cost == endless ? endless : cost + other.cost;
      fresh = std::min(many, fresh + other.fresh);
    }
  };
  bool is_plain(StateId start, unsigned depth = 0);
  WayOut own_way(const Item& item);
  template <typename W, typename F>
  W along_waiting(OriginId origin, FlatMap<uint32_t, W>& known, F&& way_of);
  WayOut way_out(OriginId origin);
  template <typename F>
  bool within(size_t read, uint64_t tokens, F&& bound_in);
  struct Way {  // what is on it
    uint32_t fresh, tokens;
    void add(const Way& other) {
      fresh = std::min(many, fresh + other.fresh);
      tokens = std::min(many_tokens, tokens + other.tokens);
    }
  };
  Way way_of_path(uint32_t path, Unit unit, unsigned depth = 0);
  Way way_of_origin(OriginId origin);
  uint32_t tokens_of_shortest(ExprId e);
  uint64_t fresh_slack();
  uint64_t tokens_of(const Bound& bound, size_t read);
  bool may_ask(Hash key, size_t questions);
  Hash completion_key(const Place& place, bool by_rules);
  bool text_matters(const Place& place);
  void add_fitting(const Mask& mask, const Place& place, const Wall& wall, const Bitmask& all, std::span<uint32_t> words);
  void add_fitting_ends(const Place& place, const Wall& wall, Bitmask& known, std::span<uint32_t> words);

  const Grammar& grammar_;
  const Vocabulary& vocabulary_;
  Stepping stepping_;
  Lexer& lexer_ = stepping_.lexer();
  Memory& memory_ = stepping_.memory();
  Parser& parser_ = stepping_.parser();
  MaskSignatures signatures_{parser_};
  TransitionRows rows_{lexer_};
  Repetitions repetitions_{lexer_, vocabulary_, rows_};
  ContextIndependentTokens independent_{grammar_, lexer_, vocabulary_, rows_, repetitions_};
  LexemeEnds ends_{lexer_, vocabulary_, rows_, repetitions_};

  FlatMap<uint64_t, uint32_t> mask_ids_;
  FlatMap<Hash, uint32_t> text_mask_ids_;  // of those that depend on the text of the lexeme under way
  OnDemand<Mask> masks_;
  SignatureRecorder* recorder_ = nullptr;  // of the mask that is computed
  std::vector<std::pair<uint32_t, Place>> suffixes_;  // on the way, in walk_suffixes
  std::deque<std::pair<ByteSet, Bitmask>> tokens_beginning_;
  FlatMap<Hash, uint32_t> token_ids_;
  std::vector<std::shared_ptr<const MaskTokens>> tokens_;  // made in this process
  size_t mask_bytes_ = 0;
  FlatMap<Hash, uint32_t> limited_mask_ids_;
  std::deque<LimitedMask> limited_masks_;
  LimitSet limits_met_;  // in what is asked now
  bool rules_solved_ = false;
  std::vector<uint64_t> rule_costs_;  // of a new activation
  std::vector<uint64_t> terminal_costs_;  // and one edge; 0: not known yet
  std::vector<uint64_t> rest_costs_;      // by state: to the rule's end, conditions aside
  std::vector<std::vector<uint32_t>> states_of_;                        // by rule
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> edges_into_;  // by state: source and edge
  std::vector<std::vector<uint32_t>> needs_;  // by rule and slot: the greatest number that a condition asks of a counter
  size_t path_limit_ = 0;                     // visits of one search
  bool cut_short_ = false;                    // some search met it
  size_t exact_states_ = 0;                   // that searches for cheapest ways have visited
  size_t search_words_ = 0;                   // of the memories of those
  FlatMap<uint64_t, uint32_t> path_ids_;
  std::deque<OwnPath> paths_;
  FlatMap<uint32_t, uint64_t> origin_costs_;

  std::array<std::vector<std::optional<Bound>>, units> set_bounds_;  // by set
  std::array<std::vector<std::optional<Bound>>, units> lexeme_bounds_;  // by terminal, the grammar's own and derived ones
  std::vector<std::optional<bool>> plain_;           // by state
  std::vector<std::optional<bool>> surely_endless_;  // by terminal of the grammar
  std::vector<std::optional<bool>> excludes_few_;    // by rule
  FlatMap<uint32_t, WayOut> ways_out_;               // by origin
  // What was asked for last: steps of one set mostly have one rule, memory and origin.
  struct BoundMemory {
    uint32_t rule = ~uint32_t{0};
    MemoryId memory{}, without{};
  };
  BoundMemory last_bound_memory_;
  std::pair<OriginId, WayOut> last_way_out_{OriginId{~uint32_t{0}}, {0, 0}};
  std::array<std::vector<std::optional<Way>>, units> path_ways_;  // by path
  FlatMap<uint32_t, Way> origin_ways_;
  FlatMap<uint32_t, uint32_t> shortest_tokens_;      // by expression
  uint64_t fresh_slack_ = 0;                      // by how much a fresh text may be longer than all read; 0: not known yet
  FlatMap<Hash, uint64_t> tokens_needed_;
  FlatMap<Hash, Limit> unknown_needs_;  // why those of tokens_needed_ that never fit are not known
  FlatMap<uint32_t, uint64_t> lexeme_rests_;
  size_t searched_places_limit_ = max_searched_places;
  uint64_t swallow_slack_ = 0;  // by how much a lexeme may have to be longer so that it is not swallowed; 0: not known yet
  bool thorough_ = false;
  // What the budget may still ask about one mask, and has asked.
  size_t questions_left_ = endless_questions;
  FlatMap<Hash, uint8_t> asked_;
};

}  // namespace constrain
