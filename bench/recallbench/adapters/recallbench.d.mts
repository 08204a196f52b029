/** recallbench protocol 1 for JavaScript and TypeScript. */

export const PROTOCOL: 1;

/** A memory as a labelled set holds it. What is not set is left out. */
export interface Memory {
  id: string;
  title?: string;
  content?: string;
  type?: "summary" | "preference" | "project" | "decision" | "history";
  /** 1 to 5. */
  importance?: number;
  /** 0 to 1. */
  quality?: number;
  archived?: boolean;
  forgotten?: boolean;
  /** ISO 8601. */
  created_at?: string;
  updated_at?: string;
  agent_scope?: string;
  workspace_scope?: string;
  sensitivity?: "public" | "personal" | "secret";
  tags?: string[];
  /** Id of the memory that this one replaces. */
  supersedes?: string;
  entities?: Record<string, "attribute" | "relation">;
  source?: { file: string; line?: number };
}

export interface Question {
  id: string;
  text: string;
  /** When it is asked, ISO 8601. */
  now?: string;
  /** Who asks; only for a system that declares the capability `session`. */
  session?: { agent_scope?: string; workspace_scope?: string; channel?: string };
}

/** One returned row. At least one of `id`, `source_ids` and `text` must be there. */
export interface Hit {
  id?: string | number;
  /** A finite number; higher is better. */
  score?: number;
  /** The memories that this row was made from, by the ids of the harness. */
  source_ids?: string[];
  text?: string;
}

export interface Answer {
  /** Best first, at most as many as were asked for. */
  hits: Hit[];
  /** Stage -> ids after it, best first. */
  trace?: Record<string, string[]>;
}

/** Our id -> yours, or a list of yours. Only where you mint ids of your own. */
export type IdMap = Record<string, string | number | (string | number)[]> | Map<string, string | number>;

export interface Context {
  /** The given embedding of each text, null where none is given. Only with the capability `vectors`. */
  embed(texts: string[]): Promise<(number[] | null)[]>;
}

type Maybe<T> = T | Promise<T>;

export interface System {
  name: string;
  version?: string;
  /** Default: `search`, `inject` and `scenario` where they are methods. Others: `session`, `vectors`, `clock`. */
  capabilities?: string[];
  /** The most rows that it ever returns. */
  capacity?: number;
  /** Forget every memory; what follows is of this corpus. */
  reset?(corpus: string, context: Context): Maybe<void>;
  /** Take a block of memories. */
  index?(memories: Memory[], context: Context): Maybe<IdMap | void>;
  /** All blocks are there. */
  indexDone?(context: Context): Maybe<IdMap | void>;
  /** May be called again before it has answered. */
  search?(question: Question, topK: number, context: Context): Maybe<Hit[] | Answer>;
  /** What would be put into the prompt. */
  inject?(question: Question, topK: number, context: Context): Maybe<Hit[] | Answer>;
  /** The settings that a scenario gives (`k`, `channels`, …); what is not known can be left alone. */
  configure?(config: Record<string, unknown>, context: Context): Maybe<void>;
  /**
   * Every step of a scenario: `scenario`, `event`, `advance`, `fault`, `call`, `probe`, `scenario_end`. Without it,
   * the adapter plays scenarios that only search: `reset`, `configure`, `index`, `search`.
   */
  scenario?(message: Record<string, unknown> & { op: string }, context: Context): Maybe<unknown>;
}

/** Answer the harness until it closes standard input. Whatever is printed goes to standard error. */
export function serve(system: System): void;
