import type { WorkflowRef } from "../core/workflow-ref.ts";
import type { EachOptions, Join, NodeOptions } from "./node-options.ts";
import type { InputReference, Known, Later, Node, SettledNode } from "./reference.ts";
import type { Inputs, IsConditional, Strict } from "./source.ts";

/** One way for the graph to succeed. */
export interface SuccessCase {
  /** All of these have completed. Default: none. */
  readonly required?: readonly Node[];
  /** If given: no node but these has failed. Default: whatever is not required may fail. */
  readonly optional?: readonly Node[];
}

/** What the function given to `dag` makes nodes with. */
export interface Graph<Input = unknown> {
  /** The graph's input, and its fields: `g.input.day`. */
  readonly input: InputReference<Input>;
  /**
   * A node: a child run of the task, begun as soon as what its input refers to is there. The input is made of values,
   * nodes, `settled(node)`, `g.input` and lists and objects of them.
   */
  node<
    TaskInput,
    Output,
    const Given extends Inputs<TaskInput, Joined, After, Given>,
    Options,
    const Joined extends Join = "all",
    After extends Node | SettledNode = never,
  >(
    name: string,
    task: WorkflowRef<TaskInput, Output>,
    ...rest: undefined extends TaskInput
      ? [
          input?: Given,
          options?: Options & NodeOptions<NoInfer<TaskInput>, Joined, After> & KnownOptions<Options>,
        ]
      : [
          input: Given,
          options?: Options & NodeOptions<NoInfer<TaskInput>, Joined, After> & KnownOptions<Options>,
        ]
  ): Node<Output, HasCondition<Options, Given | After>>;
  /**
   * A child run for each item; the node's result is the list of theirs, in the order of the items. They are a list that
   * is there now, or a node or a part of the input that gives one; then `input` gets a reference to the item. The node
   * fails once what runs has ended after an item has failed, and no other item begins.
   */
  each<
    Items extends readonly unknown[] | Node<readonly unknown[]> | Known<readonly unknown[]>,
    TaskInput,
    Output,
    const Given extends Inputs<TaskInput, Joined, After, Given>,
    Options,
    const Joined extends Join = "all",
    After extends Node | SettledNode = never,
  >(
    name: string,
    items: Items,
    task: WorkflowRef<TaskInput, Output>,
    input: (item: ItemGiven<Items>) => Given,
    options?: Options & EachOptions<ItemIn<Items>, Joined, After> & KnownOptions<Options>,
  ): Node<Output[], HasCondition<Options, Items | Given | After>>;
  /**
   * The ways in which the graph succeeds: the first that is satisfied decides. Default: no node has failed, apart from those
   * that are `optional` and those whose failure others take with `settled`.
   */
  success(...cases: readonly SuccessCase[]): void;
}

/** What a collection will be made of. */
type ItemIn<Items> = Items extends Later<readonly (infer Item)[]> | Known<readonly (infer Item)[]>
  ? Item
  : Items extends readonly (infer Item)[]
    ? Item
    : never;

/** An item that is there, or a reference to one that will be. */
type ItemGiven<Items> = Items extends Later<unknown> | Known<unknown>
  ? InputReference<ItemIn<Items>>
  : ItemIn<Items>;

type KnownOptions<Options> = Strict<Options, keyof EachOptions, NoSuchOption>;

interface NoSuchOption {
  readonly "there is no such option": never;
}

type HasCondition<Options, Given> = Options extends { readonly when: unknown } ? true : IsConditional<Given>;
