// An OpenID Connect provider for tests: oidc-provider, a certified implementation, with its login form.
// Its users and their groups, its keys and its faults are set by the tests at /test/state.

import { createServer } from "node:http";
import { generateKeyPairSync, createSign, randomUUID } from "node:crypto";
import Provider from "oidc-provider";

const [port, callback, back] = process.argv.slice(2);
const issuer = `http://localhost:${port}`; // another site than the service, which is at 127.0.0.1
const state = { groups: {}, names: {}, fault: "", rotation: 0 };

const newKey = () => ({ ...generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" });
let keys = [newKey()];
let served;

function build() {
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "tidegate", client_secret: "provider-secret-7f31", redirect_uris: [callback], post_logout_redirect_uris: [back],
      grant_types: ["authorization_code", "refresh_token"], response_types: ["code"],
    }],
    jwks: { keys },
    claims: { openid: ["sub"], profile: ["name"], groups: ["groups"] },
    scopes: ["openid", "profile", "groups", "offline_access"],
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    issueRefreshToken: async () => !state.noRefresh,
    ttl: { AccessToken: 600, IdToken: 600, RefreshToken: 86400, Session: 86400, Grant: 86400, Interaction: 600 },
    cookies: { keys: ["test"] },
    findAccount: async (ctx, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, name: state.names[id] ?? id, groups: state.groups[id] ?? [] }),
    }),
    features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  });
  provider.on("server_error", (ctx, error) => console.error(error.stack));
  return provider.callback();
}

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Replace an identity token by a false one: a fault that a conforming provider would never have. */
function forge(token) {
  const [header, claims] = token.split(".").slice(0, 2).map((part) => JSON.parse(Buffer.from(part, "base64url")));
  const now = Math.floor(Date.now() / 1000);
  if (state.fault === "issuer") claims.iss = "https://evil.example";
  if (state.fault === "audience") claims.aud = "another";
  if (state.fault === "expired") claims.exp = now - 61;
  if (state.fault === "skewed") claims.exp = now - 30;
  if (state.fault === "nonce") claims.nonce = "another";
  if (state.fault === "none") return `${encode({ alg: "none" })}.${encode(claims)}.`;
  const key = state.fault === "key" ? newKey() : keys[0];
  const content = `${encode({ ...header, kid: state.fault === "key" ? keys[0].kid : header.kid })}.${encode(claims)}`;
  return `${content}.${createSign("RSA-SHA256").update(content).sign({ key, format: "jwk" }).toString("base64url")}`;
}

function readBody(request) {
  return new Promise((resolve) => { let text = ""; request.on("data", (part) => { text += part; }); request.on("end", () => resolve(text)); });
}

async function handle(request, response) {
  if (request.url === "/test/state") {
    const { rotation, ...changes } = JSON.parse(await readBody(request));
    Object.assign(state, changes);
    if (rotation) { keys = [newKey()]; served = build(); }
    return response.end("{}");
  }
  if (request.url === "/token" && state.fault) {
    const end = response.end.bind(response);
    const setHeader = response.setHeader.bind(response);
    response.setHeader = (name, value) => (name.toLowerCase() === "content-length" ? response : setHeader(name, value));
    response.end = (body) => {
      const content = JSON.parse(String(body));
      if (content.id_token) content.id_token = forge(content.id_token);
      return end(JSON.stringify(content));
    };
  }
  return served(request, response);
}

served = build();
createServer(handle).listen(Number(port), "127.0.0.1", () => console.log("ready"));
