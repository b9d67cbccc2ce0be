import { runShare, type ShareTask } from "./share.ts";

process.once("message", (task) => {
  void runShare(task as ShareTask).then((report) => process.send?.(report, () => process.disconnect()));
});
