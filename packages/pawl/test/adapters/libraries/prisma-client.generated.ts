// @ts-nocheck
// What `prisma generate` 7.10.0 writes as internal/class.ts for the schema in `inlineSchema`, without its types: they
// would be most of it, and the test types what it uses. Generating needs the package `prisma`, of 160 MB.

import * as runtime from "@prisma/client/runtime/client";

const config: runtime.GetPrismaClientConfig = {
  "previewFeatures": [],
  "clientVersion": "7.10.0",
  "engineVersion": "0edf323efd1d98336f3f0a68684b56f689b900d3",
  "activeProvider": "postgresql",
  "inlineSchema": "generator client {\n  provider = \"prisma-client\"\n  output   = \"./gen\"\n}\n\ndatasource db {\n  provider = \"postgresql\"\n}\n\nmodel Purchase {\n  id Int @id\n\n  @@map(\"purchase\")\n}\n",
  "runtimeDataModel": {
    "models": {},
    "enums": {},
    "types": {}
  },
  "parameterizationSchema": {
    "strings": [],
    "graph": ""
  }
}

config.runtimeDataModel = JSON.parse("{\"models\":{\"Purchase\":{\"fields\":[{\"name\":\"id\",\"kind\":\"scalar\",\"type\":\"Int\"}],\"dbName\":\"purchase\",\"schema\":null}},\"enums\":{},\"types\":{}}")
config.parameterizationSchema = {
  strings: JSON.parse("[\"where\",\"Purchase.findUnique\",\"Purchase.findUniqueOrThrow\",\"orderBy\",\"cursor\",\"Purchase.findFirst\",\"Purchase.findFirstOrThrow\",\"Purchase.findMany\",\"data\",\"Purchase.createOne\",\"Purchase.createMany\",\"Purchase.createManyAndReturn\",\"Purchase.updateOne\",\"Purchase.updateMany\",\"Purchase.updateManyAndReturn\",\"create\",\"update\",\"Purchase.upsertOne\",\"Purchase.deleteOne\",\"Purchase.deleteMany\",\"having\",\"_count\",\"_avg\",\"_sum\",\"_min\",\"_max\",\"Purchase.groupBy\",\"Purchase.aggregate\",\"AND\",\"OR\",\"NOT\",\"id\",\"equals\",\"in\",\"notIn\",\"lt\",\"lte\",\"gt\",\"gte\",\"not\",\"set\",\"increment\",\"decrement\",\"multiply\",\"divide\"]"),
  graph: "JgsQBBwAAB8AMB0AAAQAEB4AAB8AMB8CAAAAAQEAAAABACABAAAAAQAgBBwAAB8AMB0AAAQAEB4AAB8AMB8CACAAIQADAAAABAAgAwAABQAwBAAAAQAgAwAAAAQAIAMAAAUAMAQAAAEAIAMAAAAEACADAAAFADAEAAABACABHwIAAAABAQgAAAkAIAEfAgAAAAEBCAAACwAwAQgAAAsAMAEfAgAmACECAAAAAQAgCAAADgAgAR8CACYAIQIAAAAEACAIAAAQACACAAAABAAgCAAAEAAgAwAAAAEAIA8AAAkAIBAAAA4AIAEAAAABACABAAAABAAgBRUAACEAIBYAACIAIBcAACUAIBgAACQAIBkAACMAIAQcAAAaADAdAAAXABAeAAAaADAfAgAbACEDAAAABAAgAwAAFgAwFAAAFwAgAwAAAAQAIAMAAAUAMAQAAAEAIAQcAAAaADAdAAAXABAeAAAaADAfAgAbACENFQAAHQAgFgAAHgAgFwAAHQAgGAAAHQAgGQAAHQAgIAIAAAABIQIAAAAEIgIAAAAEIwIAAAABJAIAAAABJQIAAAABJgIAAAABJwIAHAAhDRUAAB0AIBYAAB4AIBcAAB0AIBgAAB0AIBkAAB0AICACAAAAASECAAAABCICAAAABCMCAAAAASQCAAAAASUCAAAAASYCAAAAAScCABwAIQggAgAAAAEhAgAAAAQiAgAAAAQjAgAAAAEkAgAAAAElAgAAAAEmAgAAAAEnAgAdACEIIAgAAAABIQgAAAAEIggAAAAEIwgAAAABJAgAAAABJQgAAAABJggAAAABJwgAHgAhBBwAAB8AMB0AAAQAEB4AAB8AMB8CACAAIQggAgAAAAEhAgAAAAQiAgAAAAQjAgAAAAEkAgAAAAElAgAAAAEmAgAAAAEnAgAdACEAAAAAAAUoAgAAAAEpAgAAAAEqAgAAAAErAgAAAAEsAgAAAAEAAAAABRUABhYABxcACBgACRkACgAAAAAABRUABhYABxcACBgACRkACgECAQIDAQUGAQYHAQcIAQkKAQoMAgsNAwwPAQ0RAg4SBBETARIUARMVAhoYBRsZCw"
}

async function decodeBase64AsWasm(wasmBase64: string): Promise<WebAssembly.Module> {
  const { Buffer } = await import('node:buffer')
  const wasmArray = Buffer.from(wasmBase64, 'base64')
  return new WebAssembly.Module(wasmArray)
}

config.compilerWasm = {
  getRuntime: async () => await import("@prisma/client/runtime/query_compiler_fast_bg.postgresql.mjs"),

  getQueryCompilerWasmModule: async () => {
    const { wasm } = await import("@prisma/client/runtime/query_compiler_fast_bg.postgresql.wasm-base64.mjs")
    return await decodeBase64AsWasm(wasm)
  },

  importName: "./query_compiler_fast_bg.js"
}

export const PrismaClient = runtime.getPrismaClient(config);
