// Questions to the server on this machine. A problem comes back as an Error whose message is meant for people.

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The explorer does not answer. Is it still running in the terminal?");
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.error || `The explorer answered with status ${answer.status}.`);
  return body;
}

export function get(path) {
  return ask(path);
}

export function post(path, question, signal) {
  return ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
    signal,
  });
}
