/** How each member of an object is made out of two others. */
export type Makers<Made, A, B> = { readonly [Name in keyof Made]-?: (a: A, b: B) => unknown };

/**
 * A plain object to whoever looks at it, each member of which is made when it is first looked for: most code uses one or two of
 * many, and some are costly.
 */
export function madeOnUse<Made extends object, A, B>(makers: Makers<Made, A, B>, a: A, b: B): Made {
  return new Proxy({}, new MadeOnUse<A, B>(makers, a, b)) as Made;
}

class MadeOnUse<A, B> implements ProxyHandler<object> {
  readonly #makers: Makers<Record<string, unknown>, A, B>;
  readonly #a: A;
  readonly #b: B;
  #isWhole = false;

  constructor(makers: Makers<Record<string, unknown>, A, B>, a: A, b: B) {
    this.#makers = makers;
    this.#a = a;
    this.#b = b;
  }

  get(made: object, name: PropertyKey, receiver: unknown): unknown {
    if (!this.#isWhole && !Object.hasOwn(made, name) && Object.hasOwn(this.#makers, name))
      this.#make(made, name as string);
    return Reflect.get(made, name, receiver);
  }

  set(made: object, name: PropertyKey, value: unknown, receiver: unknown): boolean {
    return Reflect.set(this.#whole(made), name, value, receiver);
  }

  has(made: object, name: PropertyKey): boolean {
    return Reflect.has(this.#whole(made), name);
  }

  ownKeys(made: object): (string | symbol)[] {
    return Reflect.ownKeys(this.#whole(made));
  }

  getOwnPropertyDescriptor(made: object, name: PropertyKey): PropertyDescriptor | undefined {
    return Reflect.getOwnPropertyDescriptor(this.#whole(made), name);
  }

  defineProperty(made: object, name: PropertyKey, descriptor: PropertyDescriptor): boolean {
    return Reflect.defineProperty(this.#whole(made), name, descriptor);
  }

  deleteProperty(made: object, name: PropertyKey): boolean {
    return Reflect.deleteProperty(this.#whole(made), name);
  }

  preventExtensions(made: object): boolean {
    return Reflect.preventExtensions(this.#whole(made));
  }

  #whole(made: object): object {
    if (this.#isWhole) return made;
    this.#isWhole = true;
    for (const name of Object.keys(this.#makers)) if (!Object.hasOwn(made, name)) this.#make(made, name);
    return made;
  }

  #make(made: object, name: string): void {
    (made as Record<string, unknown>)[name] = this.#makers[name]?.(this.#a, this.#b);
  }
}
